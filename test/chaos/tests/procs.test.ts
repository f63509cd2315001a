import { once } from 'node:events'
import { connect } from 'node:net'
import { expect } from 'chai'
import { check } from '../checker.ts'
import type { Entry } from '../history.ts'
import { type Proc, Procs } from '../procs.ts'

/** An echo server that prints its port late and in two pieces. */
const SERVER = `
  const server = require('node:net').createServer((socket) => socket.pipe(socket).on('error', () => {}))
  server.listen(0, '127.0.0.1', () => {
    const [start, end] = [String(server.address().port).slice(0, 2), String(server.address().port).slice(2)]
    process.stdout.write('listening on ' + start)
    setTimeout(() => process.stdout.write(end + '\\n'), 20)
  })
  process.on('SIGTERM', () => process.exit(Number(process.env.EXIT_CODE)))`

const spec = (script = SERVER, env: Record<string, string> = { EXIT_CODE: '0' }) => ({
  name: 'wk1',
  args: ['--eval', script],
  env,
  ready: /^listening on (\d+)$/m,
})

const portOf = ({ ready }: Proc) => Number(ready[1])

describe('the processes of a scenario', () => {
  const history: Entry[] = []
  let procs: Procs

  beforeEach(() => {
    history.length = 0
    procs = new Procs((entry) => void history.push(entry))
  })
  afterEach(() => procs[Symbol.asyncDispose]())

  it('have started when their ready line is complete', async () => {
    const proc = await procs.start(spec())
    const socket = connect(portOf(proc), '127.0.0.1')
    await once(socket, 'connect')
    socket.destroy()
    expect(procs.running).to.deep.equal([proc])
  })

  it('inherit nothing of this process’s environment', async () => {
    const proc = await procs.start({
      ...spec(`console.log('listening on 1', Object.keys(process.env))`),
      ready: /\[(.*)\]/,
    })
    expect(proc.ready[1]).to.equal(` 'EXIT_CODE' `)
  })

  it('that end before they are ready cause an error with their output', async () => {
    const failure = await procs.start(spec(`console.error('no such port'); process.exit(3)`)).catch(String)
    expect(failure).to.include('wk1 ended without a line like').and.include('no such port')
  })

  it('that are not ready in time are killed and cause an error', async () => {
    const script = `console.log(process.pid); setInterval(() => {}, 1000)`
    const failure = await procs.start({ ...spec(script), readyWithinMs: 300 }).then(() => '', String)
    expect(failure).to.include('did not print within 300 ms a line like')
    const pid = Number(/(\d+)\s*$/.exec(failure)?.[1])
    expect(() => process.kill(pid, 0)).to.throw('ESRCH')
  })

  it('are dead and recorded when the call of kill returns', async () => {
    const proc = await procs.start(spec())
    await proc.kill('SIGKILL')
    expect(() => process.kill(proc.pid, 0)).to.throw('ESRCH')
    expect(await proc.exited).to.deep.equal({ code: null, signal: 'SIGKILL' })
    expect(history.map((entry) => ({ ...entry, t: 0 }))).to.deep.equal([
      { kind: 'killed', t: 0, what: 'wk1', signal: 'SIGKILL' },
      { kind: 'exited', t: 0, what: 'wk1', code: null, signal: 'SIGKILL' },
    ])
    await proc.kill('SIGKILL')
    expect(history).to.have.lengthOf(2)
  })

  it('do nothing while they are frozen', async () => {
    const proc = await procs.start(spec())
    await proc.kill('SIGSTOP')
    const socket = connect(portOf(proc), '127.0.0.1')
    await once(socket, 'connect') // The kernel accepts the connection.
    socket.write('hello')
    const first = await Promise.race([once(socket, 'data'), new Promise((resolve) => setTimeout(resolve, 100))])
    expect(first).to.equal(undefined)
    await proc.kill('SIGCONT')
    const [echo] = (await once(socket, 'data')) as [Buffer]
    expect(echo.toString()).to.equal('hello')
    socket.destroy()
  })

  it('that exit with code 0 on SIGTERM leave no violation, frozen or not', async () => {
    const proc = await procs.start(spec())
    await proc.kill('SIGSTOP')
    expect(await proc.stop(5000)).to.deep.equal({ code: 0, signal: null })
    expect(check(history)).to.deep.equal([])
  })

  it('that exit with another code or not in time are reported', async () => {
    const bad = await procs.start(spec(SERVER, { EXIT_CODE: '1' }))
    expect(await bad.stop(5000)).to.deep.equal({ code: 1, signal: null })
    const stubborn = await procs.start(spec(`process.on('SIGTERM', () => {}); ${SERVER.replace(/process\.on.*/, '')}`))
    expect(await stubborn.stop(50)).to.deep.equal({ code: null, signal: 'SIGKILL' })
    expect(check(history).map(({ rule }) => rule)).to.deep.equal(['unexpected-exit', 'unexpected-exit'])
  })

  it('keep the last 64 Ki characters of their output', async () => {
    const script = `for (let i = 0; i < 40000; i++) console.log('line ' + i); console.log('listening on 1'); setInterval(() => {}, 1000)`
    const proc = await procs.start(spec(script))
    expect(proc.output).to.have.lengthOf(64 * 1024)
    expect(proc.output).to.match(/line 39999\nlistening on 1\n$/)
  })

  it('are all dead after the scenario, frozen ones too', async () => {
    const all = [await procs.start(spec()), await procs.start(spec())]
    await all[0]?.kill('SIGSTOP')
    await procs[Symbol.asyncDispose]()
    for (const { pid } of all) expect(() => process.kill(pid, 0)).to.throw('ESRCH')
    expect(procs.running).to.have.lengthOf(0)
  })
})
