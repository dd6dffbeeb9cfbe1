create function pgflow.task_is_active(status text)
returns boolean
language sql
immutable
parallel safe
begin atomic
  select status in ('queued', 'started');
end;

comment on function pgflow.task_is_active(text) is
'Whether a task of this status still has a future; every other status is terminal and never changes again.';
