create function pgflow.check_caller_routes(flow_slug text, derived jsonb, given jsonb)
returns void
language plpgsql
immutable
set search_path to pg_catalog, pg_temp
as $function$
begin
  if check_caller_routes.given is null or check_caller_routes.given = check_caller_routes.derived then
    return;
  end if;

  raise exception using
    errcode = 'PF007',
    message = format(
      'The route map passed for flow "%s" is not the one that PostgreSQL derives.',
      check_caller_routes.flow_slug
    ),
    detail = case
      when jsonb_typeof(check_caller_routes.given) <> 'array' then
        format('Passed was %s, not an array.', pgflow.json_excerpt(check_caller_routes.given))
      else (
        -- Ten say enough, and a caller's mistake must not fill the log.
        select string_agg(
          format(
            'Index %s: passed %s, derived %s.',
            route.position - 1,
            coalesce(pgflow.json_excerpt(route.given), 'nothing'),
            coalesce(pgflow.json_excerpt(route.derived), 'nothing')
          ),
          ' '
          order by route.position
        ) filter (where route.number <= 10)
        || case when max(route.number) > 10 then format(' And %s more.', max(route.number) - 10) else '' end
        from (
          select
            coalesce(given.position, derived.position) as position,
            given.route as given,
            derived.route as derived,
            row_number() over (order by coalesce(given.position, derived.position)) as number
          -- Guarded once more: when the planner works out a subquery is not for the CASE around it to say.
          from jsonb_array_elements(
            case jsonb_typeof(check_caller_routes.given) when 'array' then check_caller_routes.given else '[]' end
          ) with ordinality as given (route, position)
          full join jsonb_array_elements(check_caller_routes.derived) with ordinality as derived (route, position)
            on derived.position = given.position
          where given.route is distinct from derived.route
        ) as route
      )
    end,
    hint = 'Client and extension derive names by different rules, so one of them is out of date. '
      'Pass null to let PostgreSQL derive the routes.';
end
$function$;

comment on function pgflow.check_caller_routes(text, jsonb, jsonb) is
'Internal: returns when a caller''s route map is null or equal to the derived one. Raises PF007, listing both where they differ.';
