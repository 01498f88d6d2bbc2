-- The service tier that a request ran on. Rows of older versions ran on the default tier.
ALTER TABLE ledger ADD COLUMN tier TEXT COLLATE "C" NOT NULL DEFAULT 'default';
