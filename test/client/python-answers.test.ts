import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { requirePythonClient } from '../../scripts/local-services/python-client.ts'
import { ROOT } from '../deploy/files.ts'

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

const JSON_TYPE = { 'content-type': 'application/json' }
const SSE_TYPE = { 'content-type': 'text/event-stream' }

/** What answers in the place of the server, by its path. */
const ANSWERS: Readonly<Record<string, [number, Record<string, string>, string]>> = {
  page: [200, { 'content-type': 'text/html' }, `<html>${'a sign-in page '.repeat(100)}</html>`],
  redirect: [302, { location: '/page/' }, '<a href="/page/">moved</a>'],
  moved: [308, { location: '/page/' }, ''],
  list: [200, JSON_TYPE, '[]'],
  text: [200, JSON_TYPE, '"ok"'],
  cut: [200, JSON_TYPE, '{"runs": ['],
  deep: [200, JSON_TYPE, '['.repeat(50_000)],
  unknown: [200, JSON_TYPE, '{"hello": 1}'],
  stream: [200, SSE_TYPE, 'id: 1\nevent: text\ndata: <html>\n\n'],
  numbers: [200, SSE_TYPE, 'id: one\nevent: text\ndata: {"text": "a"}\n\n'],
  fields: [200, SSE_TYPE, 'id: 1\nevent: text\ndata: {"hello": 1}\n\n'],
}

describe('the Python client at something that is no agent-engine', () => {
  let server: Server
  const asked = new Map<string, number>()
  before(async () => {
    server = createServer((req, res) => {
      const [, name = ''] = (req.url ?? '').split('/')
      asked.set(name, (asked.get(name) ?? 0) + 1)
      const [status, headers, body] = ANSWERS[name] ?? [404, {}, '']
      res.writeHead(status, { 'x-run-id': 'run_1', ...headers }).end(body)
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
  })
  after(() => {
    server.closeAllConnections()
    server.close()
  })

  it('ends each call with ConnectionFailed, which shows the beginning of what came, after one request', async () => {
    const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const env = { PATH: process.env['PATH'], PYTHONPATH: `${ROOT}shared/client-python:${await requirePythonClient()}` }
    const urls = Object.keys(ANSWERS).map((name) => `${base}/${name}`)
    const { stdout } = await promisify(execFile)('python3', ['-B', '-c', PROGRAM, ...urls], { env })
    const ends = JSON.parse(stdout) as Record<string, Record<string, string>>
    for (const [url, calls] of Object.entries(ends)) {
      const others = Object.entries(calls).filter(([, end]) => end !== 'ConnectionFailed')
      const name = url.slice(base.length + 1)
      // Every object is an answer of any other endpoint, and an event of a tenant may have any id and data.
      const free = { unknown: ['request'], numbers: ['events'], fields: ['events'] }[name] ?? []
      expect(others.map(([call, end]) => (free.includes(call) && end === 'answered' ? call : end)), name).to.deep.equal(free)
      // The inbox reads the list beside its stream.
      expect(asked.get(name), `requests of ${name}`).to.be.at.most(Object.keys(calls).length + 1)
    }
  })
})
