create function pgflow.way_to_enable(function_name text, flow_slug text)
returns text
language sql
stable
begin atomic
  select coalesce(
    (
      select format('select * from pgflow.unfence_flow(%L)', fence.flow_slug)
      from pgflow.fences as fence
      where fence.restored_at is null
        and (
          fence.function_name = way_to_enable.function_name
          or fence.flow_slug = way_to_enable.flow_slug
        )
      order by fence.fenced_at
      limit 1
    ),
    format('select pgflow.enable_worker_function(%L)', way_to_enable.function_name)
  );
end;

comment on function pgflow.way_to_enable(text, text) is
'Internal: the call that lets a worker function that is disabled or fenced work for a flow again, as text for a hint.';
