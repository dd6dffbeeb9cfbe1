-- A worker that can't start leaves neither a row of its own nor a change to its function, whatever the reason.
begin;
\ir helpers.psql

select plan(20);

select pg_temp.step_flow('f', 'a', 'b');
select pg_temp.plain_flow('plain', 'a');
select pgflow.register_worker(pg_temp.id('known'), 'known', 'f', 'a');
select pgflow.register_worker(pg_temp.id('off'), 'off', 'f', 'a');
select pgflow.disable_worker_function('off', 'it spoils orders');

create temporary table staff_before as
select pg_temp.staff() as staff;

create function pg_temp.is_unchanged(description text)
returns text
language sql
as $$
  select is(pg_temp.staff(), (select staff from staff_before), is_unchanged.description)
$$;

-- Missing or wrong arguments.
select results_eq(
  $outer$select sqlstate, message from pg_temp.refusal($$select pgflow.register_worker(null, 'fn', 'f', 'a')$$)$outer$,
  $$values ('PF019', 'A worker can''t be registered without a worker_id.')$$,
  'a worker needs an id'
);
select throws_ok(
  $$select pgflow.register_worker(pg_temp.id('x'), null, 'f', 'a')$$,
  'PF019', 'A worker can''t be registered without a function_name.', 'and a function'
);
select throws_ok($$select pgflow.register_worker(pg_temp.id('x'), ' ', 'f', 'a')$$, 'PF019', null, 'that has a name');
select throws_ok(
  $$select pgflow.register_worker(pg_temp.id('x'), 'fn', null, 'a')$$,
  'PF019', 'A worker can''t be registered without a flow_slug.', 'and a flow'
);
select throws_ok(
  $$select pgflow.register_worker(pg_temp.id('x'), 'fn', 'f', 'a', 'cron')$$,
  'PF019', 'Start mode "cron" of worker function "fn" is not known.', 'a start mode is one of two'
);
select pg_temp.is_unchanged('a bad argument leaves no row');

select throws_ok(
  $$select pgflow.register_worker(pg_temp.id('x'), 'fn', 'nowhere', 'a')$$,
  'PF018', 'Flow "nowhere" is not known.', 'the flow must be there'
);
select pg_temp.is_unchanged('an unknown flow leaves no row');

-- A disabled function.
select results_eq(
  $outer$
    select sqlstate, message, hint
    from pg_temp.refusal($$select pgflow.register_worker(pg_temp.id('x'), 'off', 'f', 'a', 'http')$$)
  $outer$,
  $$
    values (
      'PF012',
      'Worker function "off" is disabled: it spoils orders',
      'When the cause is removed: select pgflow.enable_worker_function(''off'');'
    )
  $$,
  'a disabled function is refused with its reason and the call that enables it'
);
select throws_ok(
  $$select pgflow.register_worker(pg_temp.id('off'), 'off', 'f', 'a')$$,
  'PF012', null, 'a worker of it that was registered before can''t come back either'
);
select pg_temp.is_unchanged('a disabled function keeps its start mode, and no worker comes');

-- A known id.
select throws_ok(
  $$select pgflow.register_worker(pg_temp.id('known'), 'new', 'f', 'b')$$,
  'PF010', null, 'a known id is refused for another step'
);
select pg_temp.is_unchanged('which makes no function');

-- Routes that are not what was compiled.
select pgmq.drop_queue('f__a');
select results_eq(
  $outer$
    select sqlstate, message, detail
    from pg_temp.refusal($$select pgflow.register_worker(pg_temp.id('x'), 'fn', 'f', 'a')$$)
  $outer$,
  $$
    select 'PF007', 'The routes of flow "f" are not what was compiled.', fault.fault
    from pgflow.route_faults('f', 'a') as fault
  $$,
  'a queue that somebody dropped stops the worker of its step'
);
select pg_temp.is_unchanged('which leaves no row');
select lives_ok($$select pgflow.register_worker(pg_temp.id('y'), 'fn', 'f', 'b')$$, 'but not that of another step');

select pg_temp.make_again('plain');
select throws_ok(
  $$select pgflow.register_worker(pg_temp.id('x'), 'new', 'plain')$$,
  'PF007', null, 'a queue that somebody made again stops the workers of a flow-mode flow'
);

update pgflow.steps set queue_name = 'f__a' where flow_slug = 'f' and step_slug = 'b';
select results_eq(
  $outer$
    select sqlstate, detail like '%the persisted route is "f__a", the derived one is "f__b"%'
    from pg_temp.refusal($$select pgflow.register_worker(pg_temp.id('x'), 'new', 'f', 'b')$$)
  $outer$,
  $$values ('PF007', true)$$,
  'a route that was changed by hand is shown beside the derived one'
);
select is_empty(
  $$select * from pgflow.worker_functions where function_name = 'new'$$, 'and none of these made a function'
);
select is_empty($$select * from pgflow.workers where worker_id = pg_temp.id('x')$$, 'or a worker');

select * from finish();
rollback;
