create function pgflow.choice_flaw(choice jsonb, choices text[])
returns text
language sql
immutable
parallel safe
set search_path to pg_catalog, pg_temp
as $function$
  select case
    when jsonb_typeof(choice_flaw.choice) <> 'string' then
      format('must be a string, but is %s', pgflow.json_excerpt(choice_flaw.choice))
    when choice_flaw.choice #>> '{}' <> all (choice_flaw.choices) then
      format(
        'must be one of %s, but is %s',
        array_to_string(choice_flaw.choices, ', '),
        pgflow.json_excerpt(choice_flaw.choice)
      )
  end;
$function$;

comment on function pgflow.choice_flaw(jsonb, text[]) is
'Internal: what is wrong with a JSON value that must be one of some strings; null when nothing is.';
