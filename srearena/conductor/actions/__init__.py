"""The actions of an agent: parsing its text into a call (`parsing`), and performing calls (`toolbox`)."""
