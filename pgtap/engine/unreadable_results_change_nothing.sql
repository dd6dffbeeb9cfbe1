begin;
\ir ../helpers.psql
select plan(45);

select pg_temp.compile('f', 'step', jsonb_build_array(pg_temp.map('m'), pg_temp.step('s', 'm')));
select pg_temp.start('f', 'r', '[1, 2, 3]');
select count(*) from pg_temp.claim('f', 'm', 3);

create function pg_temp.good(task_index int)
returns jsonb
language sql
as $$
  select jsonb_build_object('run_id', pg_temp.id('r'), 'step_slug', 'm', 'task_index', task_index, 'attempt', 1, 'output', 1, 'error_message', 'x')
$$;

-- Each is put between two good elements, so it has index 1.
create temporary table bad (name text, element jsonb, key text);
insert into bad values
('null', 'null', null),
('a string', '"x"', null),
('a number', '7', null),
('an array', '[]', null),
('an empty object', '{}', 'run_id'),
('no run_id', pg_temp.good(1) - 'run_id', 'run_id'),
('run_id null', pg_temp.good(1) || '{"run_id": null}', 'run_id'),
('run_id no uuid', pg_temp.good(1) || '{"run_id": "1234"}', 'run_id'),
('run_id a number', pg_temp.good(1) || '{"run_id": 5}', 'run_id'),
('run_id with a line break', pg_temp.good(1) || jsonb_build_object('run_id', pg_temp.id('r') || e'\n'), 'run_id'),
('no step_slug', pg_temp.good(1) - 'step_slug', 'step_slug'),
('step_slug null', pg_temp.good(1) || '{"step_slug": null}', 'step_slug'),
('step_slug a number', pg_temp.good(1) || '{"step_slug": 1}', 'step_slug'),
('no task_index', pg_temp.good(1) - 'task_index', 'task_index'),
('task_index null', pg_temp.good(1) || '{"task_index": null}', 'task_index'),
('task_index negative', pg_temp.good(1) || '{"task_index": -1}', 'task_index'),
('task_index a fraction', pg_temp.good(1) || '{"task_index": 1.5}', 'task_index'),
('task_index too large', pg_temp.good(1) || '{"task_index": 99999999999999999999}', 'task_index'),
('task_index an object', pg_temp.good(1) || '{"task_index": {}}', 'task_index'),
('attempt a word', pg_temp.good(1) || '{"attempt": "first"}', 'attempt'),
('attempt negative', pg_temp.good(1) || '{"attempt": -1}', 'attempt'),
('attempt too large', pg_temp.good(1) || '{"attempt": 99999999999999999999}', 'attempt'),
('attempt an array', pg_temp.good(1) || '{"attempt": [1]}', 'attempt'),
('a misspelled attempt', pg_temp.good(1) - 'attempt' || '{"Attempt": 1}', 'Attempt'),
('an unknown key', pg_temp.good(1) || '{"extra": true}', 'extra');

select pg_temp.picture('f') as before \gset

create function pg_temp.refusal(call text, element jsonb)
returns text
language plpgsql
as $$
declare
  message text;
begin
  execute format('select * from pgflow.%I($1)', call)
  using jsonb_build_array(pg_temp.good(0), element, pg_temp.good(2));
  return 'no error';
exception
  when sqlstate 'PF019' then
    get stacked diagnostics message = message_text;
    return 'PF019 ' || message;
end
$$;

select matches(
  pg_temp.refusal('complete_tasks', element), format('^PF019 .*\m1\M.*%s', key), 'complete_tasks refuses ' || name || ' and names index and key'
)
from bad;
select is(
  (select array_agg(name) from bad where pg_temp.refusal('fail_tasks', element) !~ format('^PF019 .*\m1\M.*%s', key)), null,
  'fail_tasks refuses all of these too'
);
select matches(
  pg_temp.refusal('fail_tasks', pg_temp.good(1) || jsonb_build_object('error_message', message::jsonb)), '^PF019 .*\m1\M.*error_message',
  'fail_tasks refuses an error message that is no string: ' || message
)
from unnest(array['{"code": 5}', '5', '[]']) as message;
select matches(
  pg_temp.refusal('complete_tasks', pg_temp.good(1) - 'output'), '^PF019 .*\m1\M.*"output" must be given', 'a failure is not taken for a success'
);
select matches(
  pg_temp.refusal('fail_tasks', pg_temp.good(1) - 'error_message'), '^PF019 .*\m1\M.*error_message', 'nor a success for a failure'
);
select matches(pg_temp.refusal('complete_tasks', null), '^PF019 .*\m1\M', 'an element may not be null');
select throws_ok(
  format('select * from pgflow.complete_tasks(%L)', results), 'PF019', null, 'results must be an array, not ' || results
)
from unnest(array['{"run_id": 1}', '"x"', 'null', '3']) as results;
select throws_ok(
  format('select * from pgflow.fail_tasks(%L)', results), 'PF019', null, 'results must be an array, not ' || results
)
from unnest(array['{"run_id": 1}', '"x"', 'null', '3']) as results;

select is(pg_temp.picture('f'), :'before', 'nothing was changed by any of these, not even the tasks of good elements');

-- What may be left out.

select is(
  (select status from pgflow.complete_tasks(jsonb_build_array(pg_temp.good(0) - 'attempt' - 'error_message'))), 'completed', 'attempt may be absent'
);
select is(
  (select status from pgflow.fail_tasks(jsonb_build_array(pg_temp.good(1) - 'attempt' - 'error_message' - 'output'))), 'retrying', 'and so may the error message'
);
select is(
  (select status from pgflow.complete_tasks(jsonb_build_array(pg_temp.good(2) || jsonb_build_object('run_id', upper(pg_temp.id('r')::text))))), 'completed',
  'an id may be in upper case'
);
select pg_temp.is_sound('f', 'the flow is sound');

select * from finish();
rollback;
