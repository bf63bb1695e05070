"""The modules of torch.nn."""
