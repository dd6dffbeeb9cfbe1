create function pgflow.taken_names(intruders text[], name_holders text[])
returns text
language sql
immutable
parallel safe
set search_path to pg_catalog, pg_temp
as $function$
  select concat_ws(
    ' ',
    'What has the name of one of its tables is none (' || nullif(array_to_string(intruders, '; '), '') || ').',
    'Other names that it needs belong to ' || nullif(array_to_string(name_holders, ', '), '') || '.'
  );
$function$;

comment on function pgflow.taken_names(text[], text[]) is
'Internal: what physical_queues() found under the names that a queue needs, in words for error messages: the statements that drop what is no table of a queue, and the tables that hold other names.';
