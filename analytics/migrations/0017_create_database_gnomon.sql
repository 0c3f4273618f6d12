-- Views for people: stable names and columns. A reader needs rights on this database only.
CREATE DATABASE IF NOT EXISTS gnomon
