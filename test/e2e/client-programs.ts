/** Programs of users of generated clients. Each gets the API's address and a token, and prints one JSON value. */

/** `api.ts` is what openapi-typescript generated. */
export const TYPESCRIPT_PROGRAM = `
import createClient from 'openapi-fetch'
import type { components, paths } from './api.ts'

const [baseUrl = '', token] = process.argv.slice(2)
const api = createClient<paths>({ baseUrl, headers: { Authorization: \`Bearer \${token}\` } })

const plan: components['schemas']['PlanRequest'] = { steps: [{ id: 'one', prompt: 'Count to one.' }] }
const { data: schedule, error } = await api.PUT('/plans/schedules/{name}', {
  params: { path: { name: 'nightly' } },
  body: { every_secs: 86_400, plan },
})
if (error) throw new Error(error.error.message)

const { data: flow } = await api.PUT('/flows/{name}', {
  params: { path: { name: 'total' } },
  body: { input_schema: { type: 'object' }, output_schema: { type: 'object', properties: { total: { type: 'number' } } } },
})

const { data: text = '' } = await api.POST('/agent/run', { body: { prompt: 'Hello' }, parseAs: 'text' })
const texts = text
  .split('\\n\\n')
  .map(toFrame)
  .flatMap((frame) => (frame?.event === 'text' ? [frame.data.text] : []))

console.log(JSON.stringify({ step: schedule.plan.steps[0]?.id, version: flow?.version, texts }))

function toFrame(block: string): components['schemas']['EventFrame'] | undefined {
  const [, id, event, data] = /^id: (.*)\\nevent: (.*)\\ndata: (.*)$/.exec(block) ?? []
  return id && event && data ? JSON.parse(\`{"id":\${id},"event":"\${event}","data":\${data}}\`) : undefined
}
`

/** `client` is the package that openapi-python-client generated. */
export const PYTHON_PROGRAM = `
import importlib, json, pkgutil, sys
import client
from client import AuthenticatedClient
from client.api.plans import get_plan, submit_plan
from client.api.runs import start_run
from client.models import Plan, PlanRequest, PlanStep, RunAnswer, RunRequest, SubmittedPlan

for module in pkgutil.walk_packages(client.__path__, "client."):
    importlib.import_module(module.name)

api = AuthenticatedClient(base_url=sys.argv[1], token=sys.argv[2], raise_on_unexpected_status=True)
steps = [PlanStep(id="one", prompt="Count to one.")]
submitted = submit_plan.sync(client=api, body=PlanRequest(steps=steps, parallel=True))
assert isinstance(submitted, SubmittedPlan), submitted
plan = get_plan.sync(submitted.id, client=api)
assert isinstance(plan, Plan), plan
api = api.with_headers({"Accept": "application/json"})
answer = start_run.sync(client=api, body=RunRequest(prompt="Hello"))
assert isinstance(answer, RunAnswer), answer
print(json.dumps({"step": plan.steps[0].id, "parallel": plan.parallel, "output": answer.output}))
`
