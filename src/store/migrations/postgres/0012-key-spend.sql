-- What a key may spend in a day and in a month in Sydney, in pico-AUD. NULL: there is no such limit.
ALTER TABLE api_keys ADD COLUMN spend_per_day_pico_aud BIGINT;
ALTER TABLE api_keys ADD COLUMN spend_per_month_pico_aud BIGINT;
