"""What the images of this application's own products do on a simulated machine."""
