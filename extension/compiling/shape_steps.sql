create function pgflow.shape_steps(shape jsonb)
returns table (
  step_index int,
  step_slug text,
  step_type text,
  dep_slugs text[],
  when_unmet text,
  when_exhausted text,
  required_input_pattern jsonb,
  forbidden_input_pattern jsonb,
  max_attempts int,
  base_delay int,
  timeout int,
  start_delay int
)
language sql
immutable
parallel safe
set search_path to pg_catalog, pg_temp
as $function$
  select
    (item.position - 1)::int,
    item.step ->> 'slug',
    coalesce(item.step ->> 'stepType', 'single'),
    array(
      select distinct dependency.slug collate "C"
      from jsonb_array_elements_text(coalesce(item.step -> 'dependencies', '[]')) as dependency (slug)
      order by dependency.slug collate "C"
    ),
    coalesce(item.step ->> 'whenUnmet', 'skip'),
    coalesce(item.step ->> 'whenExhausted', 'fail'),
    case
      when (item.step #>> '{requiredInputPattern,defined}')::boolean then item.step #> '{requiredInputPattern,value}'
    end,
    case
      when (item.step #>> '{forbiddenInputPattern,defined}')::boolean then item.step #> '{forbiddenInputPattern,value}'
    end,
    (item.step #>> '{options,maxAttempts}')::numeric::int,
    (item.step #>> '{options,baseDelay}')::numeric::int,
    (item.step #>> '{options,timeout}')::numeric::int,
    (item.step #>> '{options,startDelay}')::numeric::int
  from jsonb_array_elements(shape_steps.shape -> 'steps') with ordinality as item (step, position)
  order by item.position;
$function$;

comment on function pgflow.shape_steps(jsonb) is
'Internal: the steps of a shape that check_shape() accepted, in order, with defaults in place of missing keys; dependencies sorted and each once; delays and timeouts in seconds, null where the flow''s apply.';
