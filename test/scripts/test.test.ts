import { watch } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { repeatFailed } from '../../scripts/testing/repeat-failed.ts'
import { NO_TESTS } from '../../scripts/testing/report.ts'
import type { GroupResult } from '../../scripts/testing/run-group.ts'
import { findTestsFor } from '../../scripts/testing/tests-for.ts'
import { findUnitTests } from '../../scripts/testing/unit-tests.ts'
import { TSCONFIG, X } from './check-tree.ts'
import { type Ended, isGone, makeProject } from './project.ts'

const GOOD = `it('one', () => {})\nit('two', () => {})`
const BAD = `it('good', () => {})\nit('bad', () => { throw new Error('no') })`

/** Nothing of it is open after its last test but what closes by itself. */
const TIDY = `import { createServer } from 'node:net'
  describe('tidy', () => {
    it('closes', () => {
      const server = createServer().listen(0)
      setTimeout(() => server.close(), 200)
      setInterval(() => {}, 60_000).unref()
    })
  })`

/** Its process would not end. */
const ALIVE = `import { createSocket } from 'node:dgram'
  it('binds', () => void createSocket('udp4').bind(0))`

type Project = Awaited<ReturnType<typeof makeProject>>

const lastLine = (text: string) => text.trimEnd().split('\n').at(-1)

describe('scripts/test (D1.1)', () => {
  describe('of tests that pass', () => {
    let project: Project
    let run: Ended
    before(async () => {
      const busy = `describe('a', () => { it('computes', () => { let sum = 0; for (let i = 0; i < 1e8; i++) sum += i % 7; return sum > 0 ? undefined : sum }) })`
      project = await makeProject({ 'test/a/a.test.ts': busy, 'test/b/deep/b.test.ts': GOOD, 'test/c/c.test.ts': TIDY })
      run = await project.start('scripts/test').ended
    })
    after(() => project[Symbol.asyncDispose]())

    it('runs the check and every test, and prints the counts in its last line', async () => {
      expect({ code: run.code, last: lastLine(run.stdout) }).to.deep.equal({ code: 0, last: '4 passed, 0 failed' })
      expect((await project.npmCalls()).at(-1)).to.equal('npm run check')
    })

    it('lists the files that took the longest, those that used the most CPU time, and the cost of each folder', () => {
      for (const pattern of [
        /^The slowest files:$/m,
        /^ {2}\d+\.\d s, CPU (?!0\.0)\d\.\d s: test\/a\/a\.test\.ts$/m,
        /^The dearest files:\n {2}CPU (?!0\.0)\d\.\d s: test\/a\/a\.test\.ts: no reason is given$/m,
        /^The cost of the folders:\n(?: {2}CPU \d\.\d s: .*\n)* {2}CPU (?!0\.0)\d\.\d s: test\/a$/m,
        /^ {2}CPU (?!0\.0)\d\.\d s: loading and shared servers$/m,
        /^All tests: \d+ s, CPU \d+ s$/m,
      ])
        expect(run.stdout).to.match(pattern)
    })
  })

  describe('of tests that fail', () => {
    let run: Ended
    before(async () => {
      const once = `import { existsSync, writeFileSync } from 'node:fs'
        it('late', () => { if (!existsSync('seen')) { writeFileSync('seen', ''); throw new Error('too late') } })`
      await using project = await makeProject({
        'test/a/a.test.ts': BAD,
        'test/b/b.test.ts': GOOD,
        'test/c/c.test.ts': `describe('c', () => { it('worse', () => { throw new Error('never') }) })`,
        'test/ends/a.test.ts': `it('one', () => process.exit(0))`,
        'test/killed/a.test.ts': `it('one', () => { process.kill(process.pid, 'SIGKILL') })`,
        'test/broken/a.test.ts': `import './missing.ts'`,
        'test/late/a.test.ts': once,
        'test/only/a.test.ts': `${GOOD}\nit.only('three', () => {})`,
        'test/skip/a.test.ts': `${GOOD}\nit.skip('three', () => {})`,
        'test/alive/a.test.ts': ALIVE,
      })
      run = await project.start('scripts/test').ended
    })

    it('adds up the tests of several processes, lists the failed ones at the end, one that is skipped too, and exits with 1', () => {
      expect({ code: run.code, last: lastLine(run.stdout) }).to.deep.equal({ code: 1, last: '7 passed, 8 failed' })
      const list = run.stdout.slice(run.stdout.lastIndexOf('Failed:')).split('\n')
      expect(list).to.include.members(['  bad', '  c: worse', '  three'])
      expect(run.stdout).to.include('Error: never')
    })

    it('repeats a file whose tests failed, alone: what passes then counts and is listed', () => {
      expect(run.stdout).to.match(/Passed only when repeated[^\n]*:\n {2}late\n/)
    })

    for (const [what, problem] of [
      ['ends itself', 'test/ends ended with 0 before its report'],
      ['is killed', 'test/killed ended with SIGKILL before its report'],
      ['cannot load a file', 'test/broken ended with 1 before its report'],
      ['has an it.only', 'test/only ended with 1 before its report'],
      ['something keeps alive after its last test', 'test/alive ended with 1 although no test failed'],
    ] as const)
      it(`a process that ${what} is one failed test, and the other processes go on`, () => {
        expect(run.stdout).to.include(problem)
      })
  })

  it('a failed check makes the exit code 1 although every test passes', async () => {
    await using project = await makeProject({ 'test/a.test.ts': GOOD })
    const { code, stdout, stderr } = await project.start('scripts/test', [], { CHECK_CODE: '2' }).ended
    expect({ code, last: lastLine(stdout) }).to.deep.equal({ code: 1, last: '2 passed, 0 failed' })
    expect(stderr).to.include('npm run check failed')
  })

  it('fails without any test', async () => {
    await using project = await makeProject({ 'test/a.test.ts': '' })
    const { code, stdout } = await project.start('scripts/test').ended
    expect({ code, last: lastLine(stdout) }).to.deep.equal({ code: 1, last: '0 passed, 0 failed' })
  })

  it('passes arguments to mocha, which runs only the tests they name, and counts skipped ones where they are allowed', async () => {
    const files = { 'test/a.test.ts': BAD, 'test/b.test.ts': `${GOOD}\nit.skip('three', () => {})` }
    await using project = await makeProject(files)
    const args = ['--no-config', 'test/b.test.ts', '--grep', 'one|three']
    const { code, stdout } = await project.start('scripts/test', args).ended
    expect({ code, last: lastLine(stdout) }).to.deep.equal({ code: 0, last: '1 passed, 0 failed, 1 skipped' })
    expect(await project.npmCalls()).to.have.length(1)
  })

  it('repeats nothing when tests of more than 20 files failed', async () => {
    const report = { ...NO_TESTS, failed: 21, failedFiles: Array.from({ length: 21 }, (_, i) => `test/x/${i}.test.ts`) }
    const first: GroupResult[] = [{ name: 'x', isOk: false, report, output: '', seconds: 0, cpu: 0 }]
    const repeat = () => Promise.reject(new Error('repeated'))
    expect(await repeatFailed(first, repeat)).to.deep.equal({ results: first, passedWhenRepeated: [] })
  })

  it('a suite that leaves something open fails once, and the failure names all that is open; what keeps the process alive is named, too', async () => {
    const text = `${ALIVE}
      import { createServer } from 'node:net'
      import { spawn } from 'node:child_process'
      let server, timer, child
      describe('leaky', () => {
        it('opens', () => {
          server = createServer().listen(0)
          timer = setInterval(() => {}, 60_000)
          child = spawn('sleep', ['60'])
          process.on('SIGTERM', () => {})
        })
      })
      describe('later', () => { it('one', () => {}) })
      after(() => {
        server.close()
        timer.unref()
        child.kill()
        process.removeAllListeners('SIGTERM')
      })`
    await using project = await makeProject({ 'test/a.test.ts': text })
    const { code, stdout, stderr } = await project.start('scripts/test', ['test/a.test.ts']).ended
    expect({ code, last: lastLine(stdout) }).to.deep.equal({ code: 1, last: '3 passed, 1 failed' })
    expect(stderr).to.match(/did not end within 5 s of its last test. Still open: .*UDPWrap/i)
    const found = /left open after "leaky": (.*);/.exec(stdout)?.[1]?.split(', ')
    expect(found).to.have.members(['1 TCPServerWrap', '1 Timeout', '1 ProcessWrap', `1 process.on('SIGTERM')`])
  })

  const UNIT = {
    'tsconfig.json': TSCONFIG,
    'shared/run.ts': `import 'node:child_process'\nimport 'ioredis'`,
    'test/a/unit.test.ts': `import type { Redis } from 'ioredis'\nimport '../support/light.ts'\nconst run: Redis = () => import('../../shared/run.ts')\n${GOOD}\nrun`,
    'test/support/light.ts': `import './other.ts'`,
    'test/support/other.ts': '',
    'test/support/redis.ts': `import '../../scripts/local-services/redis.ts'`,
    'scripts/local-services/redis.ts': '',
    'test/b/redis.test.ts': `import '../support/redis.ts'\n${BAD}`,
    'test/b/process.test.ts': `import 'node:child_process'\n${BAD}`,
    'test/b/browser.test.ts': `import 'playwright-core'\n${BAD}`,
    'test/b/mongo.test.ts': `import 'mongodb'\n${BAD}`,
  }

  it('--unit runs only files that reach no server, browser or process, without the check and the services, and fails one that starts a server all the same', async () => {
    const sly = `const { spawn } = process.getBuiltinModule('node:child_process')
      it('starts', (done) => void spawn('redis-server', ['--version']).once('error', () => done()).once('close', () => done()))`
    const more = { 'scripts/local-services.ts': 'process.exit(7)', 'test/z/sly.test.ts': sly }
    await using project = await makeProject({ ...UNIT, ...more })
    expect(findUnitTests(project.root)).to.deep.equal(['test/a/unit.test.ts', 'test/z/sly.test.ts'])
    const { code, stdout } = await project.start('scripts/test', ['--unit']).ended
    expect({ code, last: lastLine(stdout) }).to.deep.equal({ code: 1, last: '3 passed, 1 failed' })
    expect(stdout).to.include('a unit test may not start redis-server')
    expect(await project.npmCalls()).to.have.length(1)
  })

  const PRODUCT = {
    'tsconfig.json': TSCONFIG,
    'shared/a.ts': X,
    'shared/b.ts': `export { x } from './a.ts'`,
    'shared/c.ts': X,
    'services/gateway/member.ts': `import('../../shared/b.ts')`,
    'test/near.test.ts': `import './support/b.ts'\n${GOOD}`,
    'test/support/b.ts': `import '../../shared/b.ts'`,
    'test/far.test.ts': `import '../services/gateway/member.ts'\n${GOOD}`,
    'test/types.test.ts': `import type { x } from '../shared/a.ts'\n${BAD}\nlet y: typeof x`,
    'test/other.test.ts': `import '../shared/c.ts'\n${BAD}`,
  }

  it('--for runs the tests that reach a source file by their imports, and with --all those that start the product, too', async () => {
    await using project = await makeProject(PRODUCT)
    const { code, stdout } = await project.start('scripts/test', ['--for', 'shared/a.ts']).ended
    const said = '1 test files reach shared/a.ts, and 1 more through the whole product.'
    expect({ code, said: stdout.split('\n')[0], last: lastLine(stdout) }).to.deep.equal({
      ...{ code: 0, said, last: '2 passed, 0 failed' },
    })
    expect((await project.npmCalls()).includes('npm run check')).to.equal(false)
    const found = (file: string) => findTestsFor(project.root, file)
    expect(found('shared/a.ts')).to.deep.equal({ near: ['test/near.test.ts'], far: ['test/far.test.ts'] })
    expect(found('services/gateway/member.ts')).to.deep.equal({ near: ['test/far.test.ts'], far: [] })
    expect(() => found('shared/none.ts')).to.throw('there is no source file shared/none.ts')
  })

  it('SIGTERM stops the tests and the processes that they have started', async () => {
    const hanging = `import { spawn } from 'node:child_process'
      import { renameSync, writeFileSync } from 'node:fs'
      it('hangs', () => {
        writeFileSync('new', [process.pid, process.ppid, spawn('sleep', ['60']).pid].join(' '))
        renameSync('new', 'pids') // The file appears with its whole content.
        return new Promise(() => {})
      })`
    await using project = await makeProject({ 'test/a.test.ts': hanging })
    const written = Promise.withResolvers<void>()
    const watcher = watch(project.root, (_event, name) => name === 'pids' && written.resolve())
    const running = project.start('scripts/test')
    await Promise.race([written.promise, running.ended])
    watcher.close()
    const pids = (await readFile(join(project.root, 'pids'), 'utf8')).split(' ')
    running.kill('SIGTERM')
    expect((await running.ended).code).to.equal(143)
    expect(pids).to.have.length(3)
    for (const pid of pids) expect(await isGone(pid)).to.equal(true)
  })
})
