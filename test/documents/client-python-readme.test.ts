import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { cp, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { requirePythonClient } from '../../scripts/local-services/python-client.ts'
import { signatureHeaders } from '../../shared/tenancy/webhooks/signature.ts'
import { ROOT } from '../deploy/files.ts'
import { useTempFolder } from '../support/temp-folder.ts'
import { commandsOf, isAsShown } from './blocks.ts'
import { Stage } from './stage.ts'

const run = promisify(execFile)
const FOLDER = join(ROOT, 'shared/client-python')
const readme = await readFile(join(FOLDER, 'README.md'), 'utf8')

/** The programs of the README, each with what it prints. */
const [[, program = '', shown = ''] = [], [, integration = '', result = ''] = [], [, large = '', uploaded = ''] = []] =
  readme.matchAll(/```python\n([^]*?)```\n\n```\n([^]*?)```/g)

const [, webhooks = ''] = readme.split('## Webhooks')

/** The calls that the README only names: flows, the inbox, lists and errors, with the client that awaits. */
const REST = `
import asyncio
from agent_engine import ApiError, AsyncAgentEngine, RunFailed

async def main() -> None:
    async with AsyncAgentEngine("http://127.0.0.1:8080/v1", token=lambda refused: None) as engine:
        await engine.request("PUT", "/config/instances/main", body={"type": "demo"})
        number = {"type": "object", "properties": {"total": {"type": "number"}}, "required": ["total"]}
        await engine.request("PUT", "/flows/invoice-total", body={"model": "demo", "input_schema": {"type": "object"}, "output_schema": number})
        await engine.request("POST", "/flows/invoice-total/publish")
        events = []
        outcome = await engine.flows.run("invoice-total", {"text": "60"}, instance="main", on_event=lambda event: events.append(event.event))
        print(outcome.ok, list(outcome.output), events[-1], [row["status"] async for row in engine.dispatches.list()])

        run = engine.run('/tool Write {"path": "q.txt", "content": "hello"}')
        id = await run.started()
        async for ask in engine.permissions.watch():
            if ask.run_id == id:
                print(ask.tool_name, await ask.deny("not now"), await ask.allow())
                break
        print((await run.result()).run_id == id)

        long = engine.run("/sleep 60000")
        await long.started()
        await long.cancel()
        try:
            await long.result()
        except RunFailed as failure:
            print(failure.code, failure.run_id == long.id)
        try:
            await engine.runs.get("run_unknown")
        except ApiError as refusal:
            print(refusal.status, refusal.type)
        with open("notes.txt", "w") as file:
            file.write("hello" * 50_000)
        kept = await engine.files.upload("notes.txt", expires_in_secs=3600)
        [attached] = await engine.files.attach("notes.txt")
        print(kept["name"], kept["bytes"], attached["file_id"] in [row["file_id"] async for row in engine.files.list()])
        await engine.files.delete(kept["file_id"])
        try:
            await engine.files.upload("none.txt")
        except FileNotFoundError:
            print("no such file")
        print(len(await engine.runs.list(limit=1).all(2)), (await engine.runs.resume(id).result()).run_id == id)

asyncio.run(main())
`

const PRINTED = `
True ['total'] result [… 'ok']
Write True False
True
cancelled True
404 not_found_error
notes.txt 250000 True
no such file
2 True
`

describe('shared/client-python/README.md', () => {
  let stage: Stage
  const dir = useTempFolder()
  let packages: string
  before(async () => {
    packages = await requirePythonClient()
    stage = await Stage.open({ RATE_LIMIT_RPM: '0' }) // The programs have more requests than a minute's.
  })
  after(() => stage?.close())

  /** Resolves with what Python prints. Rejects with its output when it fails. */
  async function python(args: string[], file = 'python3'): Promise<string> {
    const env = { PATH: process.env['PATH'], HOME: dir.path, PYTHONPATH: packages }
    const { stdout } = await run(file, args, { cwd: dir.path, env, timeout: 40_000 }).catch(
      (cause: { stdout: string; stderr: string }) => {
        throw new Error(`${file} ${args.join(' ')} failed:\n${cause.stdout}${cause.stderr}`)
      },
    )
    return stdout
  }

  it('builds a wheel with its types, which installs into an empty environment', async () => {
    const commands = commandsOf(readme).flatMap(({ text }) => text.trim().split('\n'))
    const [build = [], install = [], ...others] = commands.map((command) => command.split(' '))
    expect([build.slice(0, 2), install.slice(0, 2), others]).to.deep.equal([['pip', 'wheel'], ['pip', 'install'], []])
    await cp(FOLDER, join(dir.path, 'shared/client-python'), { recursive: true })
    const quiet = ['--quiet', '--disable-pip-version-check']
    await python(['-m', ...build, ...quiet, '--no-build-isolation']) // As is, it fetches the builder.
    await python(['-m', 'venv', '--without-pip', 'venv'])
    const offline = ['--no-deps', '--no-index'] // As is, it fetches httpx.
    await python(['-m', 'pip', '--python', 'venv/bin/python', ...install.slice(1), ...quiet, ...offline])
    const where = `import agent_engine as it, importlib.metadata as m, pathlib; print(pathlib.Path(it.__file__).with_name("py.typed").exists(), m.version("agent-engine-client"), m.requires("agent-engine-client"))`
    expect(await python(['-c', where], join(dir.path, 'venv/bin/python'))).to.equal("True 0.1.0 ['httpx >=0.27,<1']\n")
  })

  it('has programs that mypy finds no fault with, as strict as it can be, in the types that the package has', async () => {
    const programs = [...readme.matchAll(/^```python\n([^]*?)^```$/gm)].map(([, text = '']) => text)
    expect(programs).to.have.length(4)
    const files = await Promise.all(
      programs.map(async (text, i) => {
        await writeFile(join(dir.path, `program${i}.py`), text)
        return `program${i}.py`
      }),
    )
    const found = await python(['-m', 'mypy', '--strict', '--python-executable', 'venv/bin/python', ...files])
    expect(found).to.equal('Success: no issues found in 4 source files\n')
  })

  it('has a receiver that takes a message signed by the Standard Webhooks specification, and no other', async () => {
    const [, receiver = ''] = /^```python\n([^]*?standardwebhooks[^]*?)^```$/m.exec(webhooks) ?? []
    const secret = `whsec_${randomBytes(32).toString('base64')}`
    const body = '{"type":"webhook.test","data":{"webhook":"mine"}}'
    const headers = signatureHeaders({ id: 'msg_1', sentAt: new Date(), body }, [secret])
    const call = (sent: string) =>
      `print(receive(${JSON.stringify(secret)}, ${JSON.stringify(sent)}.encode(), ${JSON.stringify(headers)}))\n`
    await writeFile(join(dir.path, 'receiver.py'), receiver + call(body) + call(`${body} `))
    const expected = "webhook.test {'webhook': 'mine'}\n204\n400\n"
    expect(await python(['receiver.py'], join(dir.path, 'venv/bin/python'))).to.equal(expected)
  })

  for (const [title, text, expected] of [
    ['a program that prints what is shown', program, shown],
    ['a client that awaits and has the rest of it', REST, PRINTED],
    ['a whole integration', integration, result],
    ['a large file that arrives in parts', large, uploaded],
  ] as const)
    it(`has ${title}`, async () => {
      await writeFile(join(dir.path, 'program.py'), stage.localized(text))
      const printed = await python(['program.py'], join(dir.path, 'venv/bin/python'))
      expect(isAsShown(expected, printed), `printed:\n${printed}`).to.equal(true)
    })
})
