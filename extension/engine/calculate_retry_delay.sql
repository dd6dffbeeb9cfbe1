create function pgflow.calculate_retry_delay(base_delay numeric, attempts_count int)
returns int
language sql
immutable
strict
parallel safe
begin atomic
  -- The exponent is capped so that the power stays computable, the result so that it fits: a year is for ever.
  select least(31536000, floor(base_delay * power(2::numeric, least(attempts_count, 64))))::int;
end;

comment on function pgflow.calculate_retry_delay(numeric, int) is
'Seconds until the next attempt: floor(base_delay * 2 ^ attempts_count), base_delay in seconds, at most a year.';
