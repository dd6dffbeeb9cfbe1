create function pgflow.is_disabled_by_fence(function pgflow.worker_functions)
returns boolean
language sql
stable
set search_path to pg_catalog, pg_temp
as $function$
  select exists (
    select
    from pgflow.fences as fence
    where fence.function_name = (function).function_name
      and fence.fenced_at = (function).disabled_at
  );
$function$;

comment on function pgflow.is_disabled_by_fence(pgflow.worker_functions) is
'Internal: whether it was a fence that disabled a function, and nobody did so again since then.';
