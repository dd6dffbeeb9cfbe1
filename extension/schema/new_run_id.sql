create function pgflow.new_run_id()
returns uuid
language sql
parallel safe
begin atomic
  -- Version 7 out of a random one: milliseconds in the first 48 bits, then the two bits in which the versions differ.
  select
    encode(
      set_bit(
        set_bit(
          substring(int8send(floor(extract(epoch from clock_timestamp()) * 1000)::bigint) from 3)
          || substring(uuid_send(gen_random_uuid()) from 7),
          52, 1
        ),
        53, 1
      ),
      'hex'
    )::uuid;
end;

comment on function pgflow.new_run_id() is
'Internal: an id for a run, a UUID of version 7 (RFC 9562): the time in milliseconds, then 74 random bits. Ids that grow with time keep what is worked on together in the indexes, however much has ended before.';
