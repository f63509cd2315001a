// Tests log.ts and log-redaction.ts: the lines of a log, without secrets and of a bounded length.

import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { createLog, type LogLevel } from '../../shared/kernel/log.ts'

function setUp(level: LogLevel = 'info', secrets: string[] = []) {
  const lines: string[] = []
  const log = createLog({ level, secrets, write: (line) => lines.push(line) })
  return { log, lines, last: () => JSON.parse(lines.at(-1) ?? '') }
}

const MAX_LINE = 16 * 1024

const fail = () => {
  throw new Error('no')
}

describe('log', () => {
  it('D1.3 LOG_LEVEL: a line is one JSON object with time, level, msg and the fields, in this order', () => {
    const { log, lines, last } = setUp()
    log.info('request', { request_id: 'req_1', status: 200 })
    expect(lines).to.have.length(1)
    expect(lines[0]).to.match(
      /^\{"time":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z","level":"info","msg":"request",.*\}\n$/,
    )
    expect(last()).to.include({ request_id: 'req_1', status: 200 })
  })

  it('D1.3 LOG_LEVEL: lines below the level are not written', () => {
    const { log, lines } = setUp('warn')
    log.debug('a')
    log.info('b')
    log.warn('c')
    log.error('d')
    expect(lines.map((line) => JSON.parse(line).msg)).to.deep.equal(['c', 'd'])
  })

  it('a field cannot override time, level or msg', () => {
    const { log, last } = setUp()
    log.info('request', { level: 'debug', time: 'never', msg: 'other' })
    expect(last()).to.include({ level: 'info', msg: 'request' })
    expect(last().time).not.to.equal('never')
  })

  it('a line break in a value stays inside its line', () => {
    const { log, lines } = setUp()
    log.info('a\nb', { path: '/x\r\n{"level":"error"}' })
    expect(lines[0]?.trimEnd()).not.to.match(/[\r\n]/)
  })

  it('of an error, only name, message, code, stack and its causes are logged', () => {
    const { log, last } = setUp()
    const reset = Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET', requestBody: 'a prompt' })
    log.error('failed', { cause: new TypeError('outer', { cause: reset }) })
    const { cause } = last()
    expect(cause).to.include({ name: 'TypeError', message: 'outer' })
    expect(cause.stack).to.include('log.test.ts')
    expect(cause.cause).to.include({ message: 'read ECONNRESET', code: 'ECONNRESET' })
    expect(cause.cause).not.to.have.property('requestBody')
  })

  it('an AggregateError is logged with each of its errors', () => {
    const { log, last } = setUp()
    log.error('failed', { cause: new AggregateError([new Error('one'), new Error('two')], 'both') })
    expect(last().cause.errors.map(({ message }: Error) => message)).to.deep.equal(['one', 'two'])
  })
})

describe('log: destination', () => {
  it('D1.3 LOG_LEVEL: lines are written to stdout by default', async () => {
    const program = `import('${new URL('../../shared/kernel/log.ts', import.meta.url).href}').then(({ createLog }) => createLog({ level: 'info' }).error('here'))`
    const { stdout, stderr } = await promisify(execFile)(process.execPath, ['-e', program])
    expect(JSON.parse(stdout)).to.include({ level: 'error', msg: 'here' })
    expect(stderr).to.equal('')
  })

  it('lines of one turn of the event loop are written together, a problem with those before it at once, and none is lost at the exit', async () => {
    const program = `import('${new URL('../../shared/kernel/log.ts', import.meta.url).href}').then(({ createLog }) => {
      const write = process.stdout.write.bind(process.stdout)
      process.stdout.write = (text) => write('write\\n' + text)
      const log = createLog({ level: 'info', atExit: (flush) => process.once('exit', flush) })
      log.info('a'); log.info('b'); log.warn('c')
      log.info('d'); process.exit(0)
    })`
    const { stdout } = await promisify(execFile)(process.execPath, ['-e', program])
    const written = stdout
      .trim()
      .split('\n')
      .map((line) => (line === 'write' ? line : JSON.parse(line).msg))
    expect(written).to.deep.equal(['write', 'a', 'b', 'c', 'write', 'd'])
  })
})

describe('log: secrets', () => {
  const key = 'sk-live "1\\2"/3'

  it('a secret is redacted in the message, fields, names, errors and nested values', () => {
    const { log, lines, last } = setUp('info', [key])
    log.info(`key ${key}`, {
      [key]: 1,
      list: [{ header: `Bearer ${key}` }],
      cause: new Error(`${key} refused`, { cause: key }),
    })
    expect(last().msg).to.equal('key [redacted]')
    expect(last().list).to.deep.equal([{ header: 'Bearer [redacted]' }])
    expect(last().cause.cause).to.equal('[redacted]')
    expect(lines.join('')).not.to.include('sk-live')
  })

  it('a secret is redacted also when it is escaped in an address or in JSON text', () => {
    const { log, lines } = setUp('info', [key])
    log.info('called', { url: `http://x/?key=${encodeURIComponent(key)}`, body: JSON.stringify({ key }) })
    expect(lines.join('')).not.to.include('sk-live')
  })

  it('a secret that looks like a number is redacted whole, and the line stays valid JSON', () => {
    const { log, last } = setUp('info', ['12345678'])
    log.info('seen', { count: 912345678, other: 12 })
    expect(last()).to.include({ count: '9[redacted]', other: 12 })
  })

  it('of two overlapping secrets the longer one is redacted first', () => {
    const { log, last } = setUp('info', ['abcd', 'abcdefgh'])
    log.info('abcdefgh abcd')
    expect(last().msg).to.equal('[redacted] [redacted]')
  })

  it('a secret of fewer than 4 characters is not redacted', () => {
    const { log, last } = setUp('info', ['', 'abc'])
    log.info('abc')
    expect(last().msg).to.equal('abc')
  })

  it('truncation leaves no part of a secret, wherever it cuts', () => {
    const secret = 'S'.repeat(64)
    const { log, lines } = setUp('info', [secret])
    for (let before = 9_900; before < 10_040; before += 1)
      log.info('long', { text: 'x'.repeat(before) + secret.repeat(3) })
    expect(lines).to.have.length(140)
    expect(lines.every((line) => !line.includes('S'))).to.equal(true)
  })
})

describe('log: bounds', () => {
  const huge: [string, () => Record<string, unknown>][] = [
    ['a text of 5 MB', () => ({ text: 'x'.repeat(5e6) })],
    ['a text of control characters, six bytes each', () => ({ text: '\u0001'.repeat(1e5) })],
    ['a text of emoji', () => ({ text: '😀'.repeat(1e5) })],
    ['an array of 500,000 numbers', () => ({ list: Array.from({ length: 5e5 }, (_, i) => i) })],
    ['an object of 100,000 names', () => Object.fromEntries(Array.from({ length: 1e5 }, (_, i) => [`name${i}`, null]))],
    ['many empty objects', () => ({ list: Array.from({ length: 1e5 }, () => ({})) })],
  ]
  for (const [name, make] of huge) {
    it(`${name} becomes a line of at most 16 KiB that is marked as truncated`, () => {
      const { log, lines, last } = setUp()
      log.info('huge', make())
      expect(Buffer.byteLength(lines[0] ?? '')).to.be.within(100, MAX_LINE)
      expect(last()).to.include({ msg: 'huge', truncated: true })
    })
  }

  it('a long message is truncated too', () => {
    const { log, lines, last } = setUp()
    log.info('x'.repeat(1e6))
    expect(Buffer.byteLength(lines[0] ?? '')).to.be.below(MAX_LINE)
    expect(last().truncated).to.equal(true)
  })

  it('a cycle, a deep value, a throwing getter and a throwing toJSON are replaced by a note', () => {
    const { log, last } = setUp()
    const circle: Record<string, unknown> = {}
    circle.self = circle
    const deep = JSON.parse(`${'['.repeat(5000)}${']'.repeat(5000)}`)
    log.info('odd', {
      circle,
      deep,
      getter: Object.defineProperty({}, 'x', { get: fail, enumerable: true }),
      json: { toJSON: fail },
    })
    expect(last()).to.deep.include({
      circle: { self: '[circular]' },
      getter: { x: '[unreadable]' },
      json: '[unreadable]',
    })
    expect(JSON.stringify(last().deep)).to.include('[too deep]')
  })

  it('values that JSON cannot express are written as text, bytes and maps as their size', () => {
    const { log, last } = setUp()
    log.info('odd', {
      big: 10n,
      symbol: Symbol('s'),
      none: undefined,
      date: new Date(0),
      bytes: Buffer.alloc(5),
      map: new Map([[1, 2]]),
    })
    expect(last()).to.include({ big: '10', symbol: 'Symbol(s)', date: '1970-01-01T00:00:00.000Z' })
    expect(last()).to.include({ bytes: '[5 bytes]', map: '[1 entries]' })
    expect(last()).not.to.have.property('none')
  })

  it('the same object twice side by side is not a cycle', () => {
    const { log, last } = setUp()
    const shared = { a: 1 }
    log.info('twice', { one: shared, two: shared })
    expect(last()).to.deep.include({ one: { a: 1 }, two: { a: 1 } })
  })
})
