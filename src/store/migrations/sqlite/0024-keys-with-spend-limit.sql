-- Finds the keys whose spend is compared with a limit.
CREATE INDEX api_keys_with_spend_limit ON api_keys (id)
  WHERE (spend_per_day_pico_aud IS NOT NULL OR spend_per_month_pico_aud IS NOT NULL) AND revoked_at IS NULL;
