import { readFile, realpath, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import type { ToolContext } from '../../../../shared/agent/tools/port.ts'
import { createBashTool } from '../../../../shared/agent/tools/process/bash.ts'
import { elapsedMs } from '../../../support/elapsed.ts'
import { callerOf, contextOf, isRunning, makeFolder, removeFolders } from '../setup.ts'

/** A shell with a child and a grandchild, all of which ignore SIGTERM. It writes their ids to the file `pids` before it prints `ready`. */
const TREE = `trap '' TERM
  (trap '' TERM; sh -c 'echo $$ >> pids; trap "" TERM; while :; do sleep 1; done' & wait) &
  echo $! >> pids; echo $$ >> pids
  while [ "$(wc -l < pids)" -lt 3 ]; do :; done
  echo ready; wait`

describe('Bash', () => {
  let workspace: string
  beforeEach(async () => {
    workspace = join(await makeFolder(), 'tenant', 'run_1')
  })
  afterEach(removeFolders)

  const bash = (command: string, input: object = {}, fields: Partial<ToolContext> = {}) =>
    callerOf([createBashTool({ graceMs: 100 })], workspace)('Bash', { command, ...input }, fields)
  const pidsOf = async () => (await readFile(join(workspace, 'pids'), 'utf8')).trim().split('\n').map(Number)

  it('D5.1: takes command and timeout_ms and asks for permission; the request shows the command', async () => {
    const tool = createBashTool()
    expect(Object.keys(tool.inputSchema['properties'] as object)).to.deep.equal(['command', 'timeout_ms'])
    expect([tool.defaultPolicy, tool.inputSchema['required']]).to.deep.equal(['ask', ['command']])
    expect(tool.describe({ command: 'rm -rf build' })).to.equal('Run the command: rm -rf build')
    const preview = await tool.preview?.({ command: 'cd build &&\n\trm \u202Ea' }, contextOf(workspace))
    expect(preview, 'D24.4').to.deep.equal({ kind: 'command', command: 'cd build &&\n\trm \\u202ea' })
  })

  it('returns output and exit code; every exit code but 0 is an error', async () => {
    expect(await bash('echo out; echo err >&2')).to.deep.equal({ output: 'out\nerr\n[exit code 0]', isError: false })
    expect(await bash('exit 3')).to.deep.equal({ output: '(no output)\n[exit code 3]', isError: true })
    expect((await bash('kill -9 $$')).output).to.include('ended by SIGKILL')
  })

  it('runs in the workspace, which it creates for its owner only', async () => {
    expect((await bash('pwd -P; echo x > a.txt')).output).to.include(`${await realpath(workspace)}\n`)
    expect((await stat(workspace)).mode & 0o777).to.equal(0o700)
    expect(await readFile(join(workspace, 'a.txt'), 'utf8')).to.equal('x\n')
  })

  it("passes none of the server's environment variables to the command", async () => {
    process.env['SECRET_OF_THE_TEST'] = 'hunter2'
    try {
      const { output } = await bash('env | sort')
      const names = [...output.matchAll(/^(\w+)=/gm)].map(([, name]) => name)
      expect(names.filter((name) => !['PWD', 'SHLVL', '_'].includes(name ?? ''))).to.deep.equal([
        'HOME',
        'LANG',
        'PATH',
      ])
      expect(output).to.include(`HOME=${workspace}\n`).and.not.to.include('hunter2')
    } finally {
      delete process.env['SECRET_OF_THE_TEST']
    }
  })

  it('a command that reads its input gets an empty input and does not wait', async () => {
    expect((await bash('cat; echo done')).output).to.equal('done\n[exit code 0]')
  })

  it('an abort ends all processes of the command, also those that ignore SIGTERM', async () => {
    const run = new AbortController()
    const outcome = await bash(TREE, {}, { signal: run.signal, report: () => run.abort() })
    expect(outcome).to.deep.equal({ output: 'The call was stopped because the run ended.', isError: true })
    const pids = await pidsOf()
    expect(new Set(pids)).to.have.length(3)
    expect(pids.filter(isRunning)).to.deep.equal([])
  })

  it('a timeout ends all processes of the command, and the output so far is returned', async () => {
    const outcome = await bash(TREE, { timeout_ms: 1_000 })
    expect(outcome).to.deep.equal({ output: 'ready\n[Stopped because it ran longer than 1000 ms.]', isError: true })
    expect((await pidsOf()).filter(isRunning)).to.deep.equal([])
  })

  it('a command that handles SIGTERM has time to clean up', async () => {
    const command = `trap 'echo bye; exit' TERM; echo ready; while :; do sleep 0.01; done`
    const outcome = await bash(command, { timeout_ms: 300 })
    expect(outcome.output).to.match(/^ready\n(Terminated\n)?bye\n\[Stopped because it ran longer than 300 ms.\]$/)
  })

  it('a background process ends with its call', async () => {
    const outcome = await bash('sleep 1000 & echo $! > pids')
    expect(outcome).to.deep.equal({ output: '(no output)\n[exit code 0]', isError: false })
    expect((await pidsOf()).filter(isRunning)).to.deep.equal([])
  })

  it('a process that left the group and keeps the output open does not delay the call', async () => {
    const start = elapsedMs()
    const outcome = await bash(
      'setsid sh -c "echo \\$\\$ > pids; exec sleep 1000" & until [ -s pids ] || [ ! -d . ] || [ $SECONDS -gt 20 ]; do sleep 0.01; done; echo done',
    )
    const [escaped = 0] = await pidsOf()
    process.kill(escaped, 'SIGKILL')
    expect(outcome.output).to.equal('done\n[exit code 0]')
    expect(elapsedMs() - start).to.be.below(5_000)
  })

  it('of long output the beginning, the end and the number of omitted characters are returned', async () => {
    const { output } = await bash('seq 100000')
    expect(output)
      .to.match(/^1\n2\n3\n/)
      .and.to.match(/\n99999\n100000\n\[exit code 0\]$/)
    const [, left = ''] = /\n\[… (\d+) characters left out …\]\n/.exec(output) ?? []
    expect(output.length).to.be.below(64 * 1024)
    expect(Number(left)).to.equal(588_895 - 2 * 31 * 1024)
  })

  it('a command that writes without end is stopped, and memory stays bounded', async () => {
    const before = process.memoryUsage().rss
    const outcome = await bash('yes')
    expect(outcome.isError).to.equal(true)
    expect(outcome.output).to.match(/\[Stopped because it wrote too much.\]$/)
    expect(process.memoryUsage().rss - before).to.be.below(64 * 1024 * 1024)
  })

  it('reports the number of lines of output as progress', async () => {
    const reports: [number, string][] = []
    await bash('echo one; sleep 0.6; echo two', {}, { report: (...report) => void reports.push(report) })
    expect(reports).to.deep.equal([
      [1, 'lines of output'],
      [2, 'lines of output'],
    ])
  })

  it('a character that arrives in two pieces stays whole', async () => {
    expect((await bash("printf '\\xe2\\x82'; sleep 0.1; printf '\\xac'")).output).to.equal('€\n[exit code 0]')
  })

  it('a NUL byte in the command and a missing shell are tool errors', async () => {
    expect((await bash('echo a\0b')).isError).to.equal(true)
    const noShell = callerOf([createBashTool({ shell: '/nonexistent/bash' })], workspace)
    expect(await noShell('Bash', { command: 'true' })).to.deep.equal({
      output: 'Bash: no such file or folder.',
      isError: true,
    })
  })
})
