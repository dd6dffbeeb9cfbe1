-- What holds for every object of the extension, now and for those to come.
begin;
\ir ../helpers.psql

select plan(8);

select is_empty(
  $$
    select procedure.oid::regprocedure
    from pg_proc as procedure
    where procedure.pronamespace = 'pgflow'::regnamespace
      and procedure.prosqlbody is null
      and not coalesce(procedure.proconfig @> array['search_path=pg_catalog, pg_temp'], false)
  $$,
  'every function pins its search path, or has a body that was resolved when it was made'
);
select is_empty(
  $$
    select procedure.oid::regprocedure
    from pg_proc as procedure
    where procedure.pronamespace = 'pgflow'::regnamespace
      and coalesce(obj_description(procedure.oid, 'pg_proc'), '') = ''
  $$,
  'every function has a comment'
);
select is_empty(
  $$
    select class.oid::regclass
    from pg_class as class
    where class.relnamespace = 'pgflow'::regnamespace
      and class.relkind in ('r', 'p', 'v', 'm', 'S')
      and coalesce(obj_description(class.oid, 'pg_class'), '') = ''
  $$,
  'every table, view and sequence has a comment'
);
select is_empty(
  $$
    select type.oid::regtype
    from pg_type as type
    inner join pg_class as class on class.oid = type.typrelid
    where type.typnamespace = 'pgflow'::regnamespace
      and class.relkind = 'c'
      and coalesce(obj_description(type.oid, 'pg_type'), '') = ''
  $$,
  'every type has a comment'
);
select is_empty(
  $$
    select class.oid::regclass
    from pg_class as class
    where class.relnamespace = 'pgflow'::regnamespace
      and class.relkind in ('r', 'p', 'S')
      and not exists (
        select
        from pg_extension as extension
        where extension.extname = 'pgflow_stepq'
          and class.oid = any(extension.extconfig)
      )
  $$,
  'the rows of every table and the state of every sequence go into a dump'
);
select is_empty(
  $$
    select class.oid::regclass
    from pg_class as class
    where class.relnamespace = 'pgflow'::regnamespace
      and class.relkind = 'r'
      and not exists (
        select
        from pg_constraint as primary_key
        where primary_key.conrelid = class.oid
          and primary_key.contype = 'p'
      )
  $$,
  'every table has a primary key'
);
select is_empty(
  $$
    select member.classid::regclass, member.objid
    from pg_depend as member
    inner join pg_extension as extension on extension.oid = member.refobjid
    where extension.extname = 'pgflow_stepq'
      and member.refclassid = 'pg_extension'::regclass
      and member.deptype = 'e'
      and pg_describe_object(member.classid, member.objid, member.objsubid) !~ 'pgflow'
  $$,
  'nothing of the extension lies outside its schema'
);
select isnt_empty(
  $$select from pg_proc as procedure where procedure.pronamespace = 'pgflow'::regnamespace$$, 'and there are functions'
);

select * from finish();
rollback;
