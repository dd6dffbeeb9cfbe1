-- An adopted or half-removed installation must be noticed before the first object is made: CREATE would
-- otherwise stop in the middle with an error about one of its tables.
do $refuse_occupied_schema$
declare
  occupants text[];
begin
  select array_agg(object.name order by object.name)
  into occupants
  from (
    select class.relname::text as name
    from pg_catalog.pg_class as class
    where class.relnamespace = 'pgflow'::regnamespace
    union
    select proc.oid::regprocedure::text
    from pg_catalog.pg_proc as proc
    where proc.pronamespace = 'pgflow'::regnamespace
    union
    select type.typname::text
    from pg_catalog.pg_type as type
    where type.typnamespace = 'pgflow'::regnamespace
  ) as object;

  if occupants is not null then
    raise exception using
      errcode = 'PF020',
      message = 'Schema "pgflow" is occupied.',
      detail = format(
        'It holds %s objects that are not of this extension: %s%s.',
        cardinality(occupants),
        array_to_string(occupants[1:5], ', '),
        case when cardinality(occupants) > 5 then ', ...' else '' end
      ),
      hint = 'Drop or rename what is there. An installed pgflow 0.14 is adopted, with its data, by '
        'CREATE EXTENSION pgflow_stepq VERSION ''pgflow014'' in releases that carry that path.';
  end if;
end
$refuse_occupied_schema$;
