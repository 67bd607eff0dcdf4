"""The object machinery behind the API: kinds, schemas, patches, selectors, validation and their errors.

Nothing in here knows of HTTP, of time or of the store's watchers: functions take objects in wire shape and
return objects in wire shape, or raise an `ApiError` that already carries the `Status` a client will read.
"""
