-- A fresh installation gives nobody anything: rights are granted one by one.
begin;
\ir ../helpers.psql

select plan(11);

select is_empty(
  $$
    select procedure.oid::regprocedure
    from pg_proc as procedure
    cross join lateral aclexplode(coalesce(procedure.proacl, acldefault('f', procedure.proowner))) as right_given
    where procedure.pronamespace = 'pgflow'::regnamespace
      and right_given.grantee = 0
  $$,
  'no function can be executed by PUBLIC'
);
select is_empty(
  $$
    select class.oid::regclass, right_given.privilege_type
    from pg_class as class
    cross join lateral aclexplode(
      coalesce(class.relacl, acldefault(case class.relkind when 'S' then 's' else 'r' end::"char", class.relowner))
    ) as right_given
    where class.relnamespace = 'pgflow'::regnamespace
      and class.relkind in ('r', 'p', 'v', 'm', 'S')
      and right_given.grantee = 0
  $$,
  'no table, view or sequence can be read by PUBLIC'
);
select is_empty(
  $$
    select right_given.privilege_type
    from pg_namespace as namespace
    cross join lateral aclexplode(coalesce(namespace.nspacl, acldefault('n', namespace.nspowner))) as right_given
    where namespace.nspname = 'pgflow'
      and right_given.grantee = 0
  $$,
  'the schema can''t be used by PUBLIC'
);

-- As a role that was just made.
select pg_temp.compile('f', 'step', jsonb_build_array(pg_temp.step('a')));
create role stepq_plain_role;
grant usage on schema public to stepq_plain_role;

create function pg_temp.fails_as_plain_role(statement text, description text)
returns text
language plpgsql
as $$
declare
  outcome text := 'no error';
begin
  begin
    set local role stepq_plain_role;
    execute statement;
    raise exception using errcode = 'ZZ999';
  exception
    when sqlstate 'ZZ999' then
      null;
    when others then
      outcome := sqlstate;
  end;

  -- The end of the block took the role back with everything else.
  return is(outcome, '42501', description);
end
$$;

select pg_temp.fails_as_plain_role('select * from pgflow.runs', 'a plain role reads no run');
select pg_temp.fails_as_plain_role('select * from pgflow.queue_coverage', 'no view');
select pg_temp.fails_as_plain_role($$select pgflow.start_flow('f', '{}')$$, 'starts no run');
select pg_temp.fails_as_plain_role(
  $$select pgflow.start_flow_with_states('f', '{}')$$, 'not even by the function that needs no right on a table'
);
select pg_temp.fails_as_plain_role($$select pgflow.get_run_with_states(gen_random_uuid())$$, 'nor reads one by such a function');
select pg_temp.fails_as_plain_role(
  $$select pgflow.register_worker(gen_random_uuid(), 'fn', 'f', 'a')$$, 'registers no worker'
);
select pg_temp.fails_as_plain_role('select * from pgmq.q_f__a', 'and reads no message');

-- The right to use the schema alone opens nothing.
grant usage on schema pgflow to stepq_plain_role;
select is_empty(
  $$
    select procedure.oid::regprocedure
    from pg_proc as procedure
    where procedure.pronamespace = 'pgflow'::regnamespace
      and has_function_privilege('stepq_plain_role', procedure.oid, 'execute')
  $$,
  'whoever gets into the schema can still execute nothing'
);

select * from finish();
rollback;
