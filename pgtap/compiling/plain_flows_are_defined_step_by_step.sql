begin;
\ir helpers.psql
select plan(46);

-- create_flow.

select results_eq(
  $$ select flow_slug, queue_mode, opt_max_attempts, opt_base_delay, opt_timeout from pgflow.create_flow('Orders') $$,
  $$ values ('Orders', 'flow', 3, 5, 60) $$,
  'create_flow makes a flow with the defaults'
);
select results_eq(
  $$ select flow_slug, opt_max_attempts, opt_base_delay, opt_timeout from pgflow.create_flow('own', 0, 0, 1) $$,
  $$ values ('own', 0, 0, 1) $$,
  'or with options of its own'
);
select results_eq(
  $$
    select opt_max_attempts, opt_base_delay, opt_timeout
    from pgflow.create_flow(flow_slug => 'named', base_delay => 7, timeout => null)
  $$,
  $$ values (3, 7, 60) $$,
  'null takes the default'
);
select is(pg_temp.pgmq_has('%orders%'), 'a_orders, orders (listed), q_orders', 'the flow has its queue');
select pg_temp.footprint() as footprint \gset
select results_eq(
  $$ select flow_slug, opt_max_attempts, opt_base_delay, opt_timeout from pgflow.create_flow('own', 5, 6, 7) $$,
  $$ values ('own', 0, 0, 1) $$,
  'a second call returns the flow as it is'
);
select is(pg_temp.footprint(), :'footprint', 'and changes nothing');

select throws_ok(
  $$ select pgflow.create_flow('bad slug') $$,
  '23514',
  'new row for relation "flows" violates check constraint "slug_is_valid"',
  'a bad slug violates slug_is_valid'
);
select throws_ok(
  format('select pgflow.create_flow(%L)', repeat('x', 129)),
  '23514',
  null,
  'so does one of 129 characters'
);
select throws_ok(
  $$ select pgflow.create_flow(e'orders\n') $$,
  '23514',
  null,
  'so does one with a line break at its end'
);
select throws_ok($$ select pgflow.create_flow('') $$, '23514', null, 'so does an empty one');
select throws_ok($$ select pgflow.create_flow(null) $$, '23502', null, 'null is no slug');
select throws_ok(
  $$ select pgflow.create_flow('neg', -1) $$,
  '23514',
  'new row for relation "flows" violates check constraint "opt_max_attempts_is_nonnegative"',
  'attempts are not negative'
);
select throws_ok(
  $$ select pgflow.create_flow('neg', 1, -1) $$,
  '23514',
  'new row for relation "flows" violates check constraint "opt_base_delay_is_nonnegative"',
  'nor is the base delay'
);
select throws_ok(
  $$ select pgflow.create_flow('neg', 1, 1, 0) $$,
  '23514',
  'new row for relation "flows" violates check constraint "opt_timeout_is_positive"',
  'a timeout is positive'
);
select is(pg_temp.pgmq_has('%neg%'), 'nothing', 'a refused flow has no queue');

-- add_step.

select results_eq(
  $$
    select
      flow_slug, step_slug, step_type, step_index, deps_count,
      opt_max_attempts, opt_base_delay, opt_timeout, opt_start_delay,
      required_input_pattern, forbidden_input_pattern, when_unmet, when_exhausted, queue_name
    from pgflow.add_step('Orders', 'pick')
  $$,
  $$
    values (
      'Orders', 'pick', 'single', 0, 0, null::int, null::int, null::int, null::int,
      null::jsonb, null::jsonb, 'skip', 'fail', 'orders'
    )
  $$,
  'add_step adds a step with the defaults, on the flow''s queue'
);
select results_eq(
  $$
    select
      step_slug, step_type, step_index, deps_count, opt_max_attempts, opt_base_delay, opt_timeout, opt_start_delay,
      required_input_pattern, forbidden_input_pattern, when_unmet, when_exhausted
    from pgflow.add_step('Orders', 'pack', array['pick'], 1, 2, 3, 4, 'map', '{"a": 1}', '{}', 'fail', 'skip-cascade')
  $$,
  $$ values ('pack', 'map', 1, 1, 1, 2, 3, 4, '{"a": 1}'::jsonb, '{}'::jsonb, 'fail', 'skip-cascade') $$,
  'or with everything of its own, in the order of arguments that pgflow 0.14 has'
);
select results_eq(
  $$ select step_index, deps_count from pgflow.add_step('Orders', 'ship', array['pack', 'pick', 'pack']) $$,
  $$ values (2, 2) $$,
  'a dependency that is named twice is one'
);
select results_eq(
  $$ select dep_slug, step_slug from pgflow.deps where flow_slug = 'Orders' order by 2, 1 $$,
  $$ values ('pick', 'pack'), ('pack', 'ship'), ('pick', 'ship') $$,
  'dependencies are kept'
);
select pg_temp.footprint() as footprint \gset
select results_eq(
  $$
    select step_index, deps_count, opt_timeout, when_unmet
    from pgflow.add_step('Orders', 'pack', array['ship'], timeout => 9)
  $$,
  $$ values (1, 1, 3, 'fail') $$,
  'a step that exists is returned as it is'
);
select is(pg_temp.footprint(), :'footprint', 'and nothing is changed');
select is((select step_index from pgflow.add_step('Orders', 'PICK')), 3, 'a slug in another case is another step');
select results_eq(
  $$ select step_index, deps_count from pgflow.add_step('own', 'only', null) $$,
  $$ values (0, 0) $$,
  'null for dependencies is none'
);

select throws_ok(
  $$ select pgflow.add_step('Orders', 'm', array['pick', 'ship'], step_type => 'map') $$,
  'PF008',
  'Map step "m" can have at most one dependency, but 2 were provided: pick, ship',
  'a map has at most one dependency'
);
select lives_ok($$ select pgflow.add_step('Orders', 'm', array['pick'], step_type => 'map') $$, 'one is fine');

create temporary table refused (arguments text, sqlstate text, name text) on commit drop;
insert into refused values
($$'unknown', 's'$$, '23503', 'steps_flow_slug_fkey'),
($$'Orders', 'bad slug'$$, '23514', 'steps_step_slug_check'),
($$'Orders', e's\n'$$, '23514', 'steps_step_slug_check'),
($$'Orders', 'run'$$, '23514', 'steps_step_slug_check'),
($$'Orders', 's', array['s']$$, '23514', 'deps_check'),
($$'Orders', 's', array['unknown']$$, '23503', 'deps_flow_slug_dep_slug_fkey'),
($$'Orders', 's', max_attempts => -1$$, '23514', 'opt_max_attempts_is_nonnegative'),
($$'Orders', 's', base_delay => -1$$, '23514', 'opt_base_delay_is_nonnegative'),
($$'Orders', 's', timeout => 0$$, '23514', 'opt_timeout_is_positive'),
($$'Orders', 's', start_delay => -1$$, '23514', 'opt_start_delay_is_nonnegative'),
($$'Orders', 's', required_input_pattern => '[]'$$, '23514', 'required_input_pattern_is_object'),
($$'Orders', 's', forbidden_input_pattern => '1'$$, '23514', 'forbidden_input_pattern_is_object'),
($$'Orders', 's', when_unmet => 'perhaps'$$, '23514', 'when_unmet_is_valid'),
($$'Orders', 's', when_exhausted => 'perhaps'$$, '23514', 'when_exhausted_is_valid');
select matches(
  (
    select concat_ws(' ', refusal.sqlstate, refusal.message)
    from pg_temp.refusal(format('select pgflow.add_step(%s)', refused.arguments)) as refusal
  ),
  format('^%s .*constraint "%s"$', refused.sqlstate, refused.name),
  format('add_step(%s) violates %s', refused.arguments, refused.name)
)
from refused;
select is_empty($$ select from pgflow.steps where step_slug = 's' $$, 'a refused step is not there');

-- A step-mode flow.

select from pg_temp.status('steps', pg_temp.shape(pg_temp.step('a')), 'step');
select pg_temp.footprint() as footprint \gset
select results_eq(
  $outer$ select * from pg_temp.refusal($$ select pgflow.add_step('steps', 'b') $$) $outer$,
  $$
    values (
      'PF009',
      'Step "b" can''t be added to flow "steps".',
      'The flow has a queue for every step, and routes are only known for a complete shape.',
      'Compile the complete shape with pgflow.ensure_flow_compiled(), under a new flow slug.'
    )
  $$,
  'a step-mode flow takes no single step'
);
select throws_ok($$ select pgflow.add_step('steps', 'a') $$, 'PF009', null, 'not one that it has, either');
select results_eq(
  $$ select flow_slug, queue_mode, opt_timeout from pgflow.create_flow('steps', 1, 1, 1) $$,
  $$ values ('steps', 'step', 60) $$,
  'create_flow returns it as it is'
);
select is(pg_temp.footprint(), :'footprint', 'and leaves mode, routes and queues alone');
select is(pg_temp.pgmq_has('%steps%'), 'a_steps__a, q_steps__a, steps__a (listed)', 'it gets no queue of its own');

-- Both ways lead to one flow.

select from pgflow.create_flow('both');
select from pgflow.add_step('both', 'a');
select from pgflow.add_step('both', 'b', array['a'], when_unmet => 'fail', required_input_pattern => '{"x": 1}');
select is(
  pg_temp.status('both', pg_temp.shape(pg_temp.step('a'), pg_temp.step('b', 'a', pg_temp.only_if('{"x": 1}', 'fail')))),
  'verified', 'a flow that was defined step by step equals its shape'
);

select * from finish();
rollback;
