"""Admission: the plug-ins that may change or refuse a write after it was decoded and before it is stored."""
