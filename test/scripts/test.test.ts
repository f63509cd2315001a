import { expect } from 'chai'
import { isGone, makeProject } from './project.ts'

const GOOD = `it('one', () => {})\nit('two', () => {})`
const BAD = `it('good', () => {})\nit('bad', () => { throw new Error('no') })`

const lastLine = (text: string) => text.trimEnd().split('\n').at(-1)

describe('scripts/test (D1.1)', () => {
  it('checks, runs every test and closes with the count', async () => {
    await using project = await makeProject({ 'test/a.test.ts': GOOD, 'test/deep/b.test.ts': GOOD })
    const { code, stdout } = await project.start('scripts/test').ended
    expect({ code, last: lastLine(stdout) }).to.deep.equal({ code: 0, last: '4 passed, 0 failed' })
    expect((await project.npmCalls()).at(-1)).to.equal('npm run check')
  })

  it('a failed test is counted and makes the exit code 1', async () => {
    await using project = await makeProject({ 'test/a.test.ts': BAD })
    const { code, stdout } = await project.start('scripts/test').ended
    expect({ code, last: lastLine(stdout) }).to.deep.equal({ code: 1, last: '1 passed, 1 failed' })
  })

  it('a failed check makes the exit code 1 although every test passes', async () => {
    await using project = await makeProject({ 'test/a.test.ts': GOOD })
    const { code, stdout, stderr } = await project.start('scripts/test', [], { CHECK_CODE: '2' }).ended
    expect({ code, last: lastLine(stdout) }).to.deep.equal({ code: 1, last: '2 passed, 0 failed' })
    expect(stderr).to.include('npm run check failed')
  })

  it('no test at all is a failure', async () => {
    await using project = await makeProject({ 'test/a.test.ts': '' })
    const { code, stdout } = await project.start('scripts/test').ended
    expect({ code, last: lastLine(stdout) }).to.deep.equal({ code: 1, last: '0 passed, 0 failed' })
  })

  it('arguments go to mocha, and only what they name runs', async () => {
    await using project = await makeProject({ 'test/a.test.ts': BAD, 'test/b.test.ts': GOOD })
    const { code, stdout } = await project.start('scripts/test', ['test/b.test.ts', '--grep', 'one']).ended
    expect({ code, last: lastLine(stdout) }).to.deep.equal({ code: 0, last: '1 passed, 0 failed' })
    expect(await project.npmCalls()).to.have.length(1)
  })

  it('skipped tests are counted where they are allowed', async () => {
    await using project = await makeProject({ 'test/a.test.ts': `${GOOD}\nit.skip('three', () => {})` })
    const { stdout } = await project.start('scripts/test', ['--no-config', 'test/a.test.ts']).ended
    expect(lastLine(stdout)).to.equal('2 passed, 0 failed, 1 skipped')
  })

  it('SIGTERM stops the tests and what they have started', async () => {
    const hanging = `import { spawn } from 'node:child_process'
      it('hangs', () => { console.log('pids', process.pid, spawn('sleep', ['60']).pid); return new Promise(() => {}) })`
    await using project = await makeProject({ 'test/a.test.ts': hanging })
    const running = project.start('scripts/test')
    const pids = (await running.says(/pids (\d+ \d+)\n/)).split(' ')
    running.kill('SIGTERM')
    expect((await running.ended).code).to.equal(143)
    for (const pid of pids) expect(await isGone(pid)).to.equal(true)
  })
})
