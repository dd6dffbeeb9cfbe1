create function pgflow.read_results(results jsonb, kind text)
returns pgflow.task_result[]
language plpgsql
immutable
set search_path to pg_catalog, pg_temp
as $function$
declare
  read pgflow.task_result[];
  bad record;
begin
  if results is null then
    return '{}';
  end if;

  if jsonb_typeof(results) <> 'array' then
    raise exception using
      errcode = 'PF019',
      message = format('Results must be a JSON array, got %s.', jsonb_typeof(results)),
      detail = 'No task was changed.',
      hint = 'Pass [{"run_id": ..., "step_slug": ..., "task_index": ..., "attempt": ..., "output" or "error_message": ...}].';
  end if;

  begin
    read := array(
      select
        row(
          (element.result ->> 'run_id')::uuid,
          element.result ->> 'step_slug',
          (element.result ->> 'task_index')::int,
          (element.result ->> 'attempt')::int,
          kind,
          element.result -> 'output',
          element.result ->> 'error_message'
        )::pgflow.task_result
      from jsonb_array_elements(results) with ordinality as element (result, position)
      -- What can be converted may still not be what was meant.
      where length(element.result ->> 'run_id') = 36
        and jsonb_typeof(element.result -> 'step_slug') = 'string'
        and (element.result ->> 'task_index')::int between 0 and 999999999
        and coalesce((element.result ->> 'attempt')::int between 0 and 999999999, true)
        and element.result - array['run_id', 'step_slug', 'task_index', 'attempt', 'output', 'error_message'] = '{}'
        and case kind
          when 'success' then element.result ? 'output'
          else coalesce(jsonb_typeof(element.result -> 'error_message'), 'null') in ('string', 'null')
            and (element.result ? 'error_message' or not element.result ? 'output')
        end
      order by element.position
    );

    if cardinality(read) = jsonb_array_length(results) then
      return read;
    end if;
  exception
    when data_exception then
      null;
  end;

  -- Which one it is, and why, is worth finding out only now.
  select element.position - 1 as index, fault.key, fault.wanted
  into bad
  from jsonb_array_elements(results) with ordinality as element (result, position)
  cross join lateral (
    select
      case
        when jsonb_typeof(element.result) <> 'object' then null
        when coalesce(element.result ->> 'run_id', '')
          !~* '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$' then 'run_id'
        when jsonb_typeof(element.result -> 'step_slug') is distinct from 'string' then 'step_slug'
        when coalesce(element.result ->> 'task_index', '') !~ '^[0-9]{1,9}$' then 'task_index'
        when coalesce(element.result ->> 'attempt', '0') !~ '^[0-9]{1,9}$' then 'attempt'
        when kind = 'failure'
          and coalesce(jsonb_typeof(element.result -> 'error_message'), 'null') not in ('string', 'null') then 'error_message'
        -- A result of the other kind, or with a misspelled key, must not be taken for one of this.
        when kind = 'success' and not element.result ? 'output' then 'output'
        when kind = 'failure' and element.result ? 'output' and not element.result ? 'error_message' then 'error_message'
        else coalesce(
          (
            select min(given.key collate "C")
            from jsonb_object_keys(case jsonb_typeof(element.result) when 'object' then element.result else '{}' end) as given (key)
            where given.key not in ('run_id', 'step_slug', 'task_index', 'attempt', 'output', 'error_message')
          ),
          ''
        )
      end as key
  ) as checked
  cross join lateral (
    select
      checked.key,
      case checked.key
        when 'run_id' then 'a UUID'
        when 'step_slug' then 'a string'
        when 'task_index' then 'a whole number from 0'
        when 'attempt' then 'a whole number or absent'
        when 'output' then 'given'
        when 'error_message' then 'a string or null'
        else case when checked.key is null then 'an object' else 'left out' end
      end as wanted
  ) as fault
  where fault.key is distinct from ''
  order by element.position
  limit 1;

  raise exception using
    errcode = 'PF019',
    message = format(
      'Result %s of %s can''t be read: %s must be %s.',
      bad.index, jsonb_array_length(results), coalesce('"' || bad.key || '"', 'it'), bad.wanted
    ),
    detail = format('It holds %s there. No task was changed.', coalesce(jsonb_typeof(results -> bad.index::int -> bad.key), 'nothing of use')),
    hint = 'Give back run_id, step_slug, task_index and attempt as poll_tasks() gave them.';
end
$function$;

comment on function pgflow.read_results(jsonb, text) is
'Internal: reads the argument of complete_tasks() (kind success) and fail_tasks() (kind failure). Raises PF019 naming the first element that can''t be read and its key.';
