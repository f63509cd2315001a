import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { requirePythonClient } from '../../scripts/local-services/python-client.ts'
import { startStandalone, useProduct } from '../support/product.ts'
import { useTempFolder } from '../support/temp-folder.ts'

const run = promisify(execFile)
const API_TOKEN = 'token-of-the-generated-clients'

/** The program of a user, which gets the address of the API and a token, and prints one JSON value. `client` is the package that openapi-python-client generated. */
const PYTHON_PROGRAM = `
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

describe('clients that are generated from the served API description', () => {
  const dir = useTempFolder()
  const product = useProduct(() => startStandalone({ API_TOKEN }))
  before(async () => {
    product.model.otherwise(() => 'Hello back')
    const served = await fetch(`${product.url}/openapi.json`)
    await writeFile(join(dir.path, 'openapi.json'), await served.text())
  })

  /** Resolves with what the command prints. Rejects with its output when it fails. */
  async function call(command: string, args: string[], env: Record<string, string> = {}): Promise<string> {
    const { stdout } = await run(command, args, { cwd: dir.path, env: { PATH: process.env['PATH'], ...env } }).catch(
      (cause: { stdout: string; stderr: string }) => {
        throw new Error(`${command} ${args.join(' ')} failed:\n${cause.stdout}${cause.stderr}`)
      },
    )
    return stdout
  }

  it("openapi-python-client's package is generated without a warning, and every module of it can be imported", async () => {
    const env = { PYTHONPATH: `${await requirePythonClient()}:.` }
    await writeFile(
      join(dir.path, 'options.yaml'),
      `post_hooks: []\ncontent_type_overrides:\n  application/offset+octet-stream: application/octet-stream\n  application/jsonl: application/octet-stream\n`,
    ) // Hooks would only format the code.
    await writeFile(join(dir.path, 'program.py'), PYTHON_PROGRAM)
    const options = ['--meta', 'none', '--config', 'options.yaml', '--fail-on-warning']
    const generator = ['-m', 'openapi_python_client', 'generate', '--path', 'openapi.json', '--output-path', 'client']
    await call('python3', [...generator, ...options], env)
    const printed = await call('python3', ['program.py', product.url, API_TOKEN], env)
    expect(JSON.parse(printed)).to.deep.equal({ step: 'one', parallel: true, output: 'Hello back' })
  })
})
