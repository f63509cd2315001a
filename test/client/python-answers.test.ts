import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { requirePythonClient } from '../../scripts/local-services/python-client.ts'
import { ROOT } from '../deploy/files.ts'
import { useOpened } from '../support/fixture.ts'
import { startStrangers } from './strangers.ts'

/** Prints the kind of error that each call ends with at each address. */
const PROGRAM = `
import json, sys
from agent_engine import AgentEngine, ConnectionFailed

def ends(url):
    with AgentEngine(url) as engine:
        calls = {
            "start": lambda: engine.runs.start("hi"),
            "run": lambda: engine.run("hi").result(),
            "resume": lambda: engine.runs.resume("run_1").result(),
            "get": lambda: engine.runs.get("run_1"),
            "list": lambda: engine.runs.list().all(),
            "open": lambda: engine.sessions.open("a"),
            "session": lambda: engine.sessions.list().page(),
            "watch": lambda: next(iter(engine.permissions.watch())),
            "flow": lambda: engine.flows.run("total", {}, instance="main"),
            "submit": lambda: engine.plans.submit({"steps": []}),
            "progress": lambda: list(engine.plans.of("plan_1").progress()),
            "retry": lambda: engine.plans.of("plan_1").retry(),
            "events": lambda: next(iter(engine.events())),
            "me": lambda: engine.me(),
            "request": lambda: engine.request("POST", "/tools", body={}),
        }
        for name, call in calls.items():
            try:
                call()
                yield name, "answered"
            except ConnectionFailed as failure:
                yield name, "ConnectionFailed" if "check the url" in str(failure) and len(str(failure)) < 300 else str(failure)
            except BaseException as failure:
                yield name, repr(failure)

json.dump({url: dict(ends(url)) for url in sys.argv[1:]}, sys.stdout)
`

const environment = async () => ({
  PATH: process.env['PATH'],
  PYTHONPATH: `${ROOT}shared/client-python:${await requirePythonClient()}`,
})

describe('the Python client', () => {
  it('keeps the rules of python-client.py, which need no server', async () => {
    const program = new URL('python-client.py', import.meta.url).pathname
    const { stderr } = await promisify(execFile)('python3', ['-B', program], { env: await environment() })
    expect(stderr).to.match(/^Ran [1-9]\d* tests in .*\n\nOK\n$/m)
  })
})

describe('the Python client at something that is no agent-engine', () => {
  const strangers = useOpened(startStrangers)

  it('ends each call with ConnectionFailed, which shows the beginning of what came, after one request', async () => {
    const env = await environment()
    const { stdout } = await promisify(execFile)('python3', ['-B', '-c', PROGRAM, ...strangers.urls], { env })
    const ends = JSON.parse(stdout) as Record<string, Record<string, string>>
    for (const [url, calls] of Object.entries(ends)) {
      const others = Object.entries(calls).filter(([, end]) => end !== 'ConnectionFailed')
      const name = strangers.nameOf(url)
      // Every object is an answer of any other endpoint, and an event of a tenant may have any id and data.
      const free = { unknown: ['request'], numbers: ['events'], fields: ['events'] }[name] ?? []
      expect(
        others.map(([call, end]) => (free.includes(call) && end === 'answered' ? call : end)),
        name,
      ).to.deep.equal(free)
      // The inbox reads the list beside its stream.
      expect(strangers.asked.get(name), `requests of ${name}`).to.be.at.most(Object.keys(calls).length + 1)
    }
  })
})
