create function pgflow.recovery_boundary(started_at timestamptz, timeout_seconds int, lease_extended_until timestamptz)
returns timestamptz
language sql
stable
parallel safe
begin atomic
  select
    greatest(started_at + make_interval(secs => timeout_seconds), lease_extended_until)
    + interval '30 seconds';
end;

comment on function pgflow.recovery_boundary(timestamptz, int, timestamptz) is
'When a started task may be taken from its worker: 30 seconds after its effective timeout, in seconds, or after its extended lease, whichever is later. Claim, deferral, extension and recovery all ask this function, so that they can''t drift apart.';
