create function pgflow.json_excerpt(value jsonb)
returns text
language sql
immutable
parallel safe
set search_path to pg_catalog, pg_temp
as $function$
  select case
    when length(json_excerpt.value::text) > 100 then left(json_excerpt.value::text, 97) || '...'
    else json_excerpt.value::text
  end;
$function$;

comment on function pgflow.json_excerpt(jsonb) is
'Internal: a JSON value as text for a message, cut at 100 characters.';
