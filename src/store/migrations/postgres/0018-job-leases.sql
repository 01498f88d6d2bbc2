-- Jobs that one process at a time does, until its lease ends. It renews the lease while it runs.
CREATE TABLE job_leases (
  name TEXT COLLATE "C" PRIMARY KEY,
  owner TEXT COLLATE "C" NOT NULL,
  lease_until BIGINT NOT NULL
);
