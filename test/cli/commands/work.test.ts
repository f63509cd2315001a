// Tests flows.ts, plans.ts and ../catalogue.ts: their options and output, against a server.
import { existsSync } from 'node:fs'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { useAe } from '../../support/ae.ts'
import { answerDirectives } from '../../support/model-server/directives.ts'
import { startStandalone } from '../../support/product.ts'
import { until } from '../../support/until.ts'

const flow = (prompt: string) => `name: invoice-total
model: demo
system_prompt_template: ${prompt}
input_schema: {type: object, properties: {text: {type: string}}, required: [text]}
output_schema: {type: object, properties: {total: {type: number}}, required: [total]}
`

const PLAN = `title: Release notes
steps:
  - {id: collect, prompt: /say the changes}
  - {id: write, prompt: /say the notes, depends_on: [collect]}
`

describe('ae flows, plans, schedules, dispatches, usage, config and api', function () {
  this.timeout(120_000)
  const at = useAe(startStandalone)
  before(async () => {
    at.server.model.otherwise(answerDirectives)
    await mkdir(join(at.home, 'flows'))
  })

  const write = (name: string, text: string) => writeFile(join(at.home, name), text)
  const run = (...args: string[]) => at.ae.run(args, { cwd: at.home })

  it('config takes values from files and stdin, and never shows a key', async () => {
    const { code } = await at.ae.run(['config', 'set', 'instances/main', '-'], { input: 'type: demo\n' })
    expect(code).to.equal(0)
    const secret = await at.ae.run(['config', 'set', 'secrets/team', '-'], {
      input: '{"value":"sk-team-0123456789abcdef"}',
    })
    expect(secret.out).to.include('sk-t').and.not.include('0123456789')
    expect(JSON.parse((await run('config', 'get', 'instances/main')).out)).to.include({ name: 'main', type: 'demo' })
    expect((await run('config', 'get', 'other')).code).to.equal(2)
    expect((await run('config', 'rm', 'secrets/team')).code).to.equal(0)
  })

  it('push shows the changes first, needs --yes in a pipe, and changes nothing that is as it was', async () => {
    await write('flows/invoice.yaml', flow('Add up.'))
    const asked = await run('flows', 'push', 'flows')
    expect(asked.code).to.equal(2)
    expect(asked.err).to.match(/^ {2}\+ invoice-total\n.*--yes/)
    expect((await run('flows', 'push', 'flows', '--yes', '--publish')).out).to.equal('invoice-total created\n')
    expect((await run('flows', 'push', 'flows')).err).to.equal('nothing to change\n')
    await write('flows/invoice.yaml', flow('Sum up.'))
    const changed = await run('flows', 'push', 'flows', '--yes', '--keep-published')
    expect(changed.err).to.equal('  ~ invoice-total\n    system_prompt_template\n      - Add up.\n      + Sum up.\n')
    expect((await run('flows', 'diff', 'invoice-total')).out)
      .to.include('- Add up.')
      .and.include('+ Sum up.')
  })

  it('push asks on a terminal', async () => {
    await write('flows/second.yaml', flow('Second.').replace('invoice-total', 'second'))
    const refused = at.ae.terminal(['flows', 'push', join(at.home, 'flows')])
    await refused.shows(/\+ second\nChange this\? \[y\/N\]$/)
    refused.type('n\r')
    expect(await refused.exited).to.equal(130)
    const agreed = at.ae.terminal(['flows', 'push', join(at.home, 'flows')])
    await agreed.shows(/Change this/)
    agreed.type('y\r')
    expect(await agreed.exited).to.equal(0)
    expect(agreed.screen.text).to.include('second created')
  })

  it('edit stores what the person has changed in EDITOR, offers to edit again what is wrong, and leaves no file', async () => {
    const seen = join(at.home, 'seen')
    const edit = async (script: string, ...args: string[]) => {
      await writeFile(join(at.home, 'editor.sh'), `#!/bin/sh\nstat -c '%a %n' "$1" > ${seen}\n${script}\n`, {
        mode: 0o700,
      })
      return at.ae.terminal(['flows', 'edit', 'second', '--keep-published', ...args], {
        env: { EDITOR: join(at.home, 'editor.sh') },
      })
    }
    const same = await edit('true')
    expect(await same.exited).to.equal(0)
    expect(same.screen.text).to.include('nothing to change')

    const wrong = await edit(
      `grep -q 'type: number' "$1" && sed -i s/number/numbre/ "$1" || sed -i 's/numbre/number/; s/Second/Third/' "$1"`,
    )
    await wrong.shows(/numbre[^]*Edit again\? \[Y\/n\]|schema[^]*Edit again\? \[Y\/n\]/)
    wrong.type('\r')
    await wrong.shows(/~ second[^]*\+ Third\.[^]*Change this\?/)
    wrong.type('y\r')
    expect(await wrong.exited).to.equal(0)
    const [mode, file = ''] = (await readFile(seen, 'utf8')).trim().split(' ')
    expect([mode, existsSync(file)]).to.deep.equal(['600', false])

    const json = await edit(`sed -i s/Third/Second/ "$1"`, '--json', '--yes')
    expect(await json.exited).to.equal(0)
    expect((await run('flows', 'get', 'second')).out).to.include('Second.')
    const refused = await run('flows', 'edit', 'second')
    expect([refused.code, refused.err]).to.deep.equal([2, '✗ there is no editor\n  Name one in EDITOR.\n'])
  })

  it('push stops at a wrong definition before it changes anything, and deletes only with --prune', async () => {
    await write('flows/second.yaml', flow('"{{input.none"').replace('invoice-total', 'second'))
    await write('flows/third.yaml', flow('Third.').replace('invoice-total', 'third'))
    const wrong = await run('flows', 'push', 'flows', '--yes')
    expect(wrong.code).to.equal(2)
    expect(wrong.err).to.include('second.yaml /system_prompt_template')
    expect((await run('flows', 'check', 'flows/second.yaml')).code).to.equal(2)
    await rm(join(at.home, 'flows/second.yaml'))
    await rm(join(at.home, 'flows/third.yaml'))
    expect((await run('flows', 'push', 'flows', '--yes')).err).to.equal('nothing to change\n')
    expect((await run('flows', 'push', 'flows', '--yes', '--prune')).out).to.equal('second deleted\n')
    expect((await run('flows', 'ls', '-o', 'ids')).out.split('\n'))
      .to.include('invoice-total')
      .and.not.include('third')
  })

  it('a batch runs a flow for each line of a file; its results go to a new file or stdout, and its id lists, follows and ends it', async () => {
    await write('in.jsonl', '{"input":{"text":"two"}}\n{"custom_id":"b","input":{"text":7}}\n')
    const batch = (...more: string[]) => run('flows', 'batch', 'invoice-total', 'in.jsonl', '-i', 'main', ...more)
    const { code, out, err } = await batch('--out', 'out.jsonl')
    expect([code, out], err).to.deep.equal([1, ''])
    expect(err).to.match(/done: 2 of 2, 1 not ok, \$/)
    const id = (await batch('--detach')).out.trim()
    const attached = await run('attach', id)
    const namesIn = (lines: string) =>
      lines
        .trim()
        .split('\n')
        .map((line) => (JSON.parse(line) as { custom_id: string }).custom_id)
    for (const lines of [attached.out, await readFile(join(at.home, 'out.jsonl'), 'utf8')])
      expect(namesIn(lines)).to.deep.equal(['1', 'b'])
    expect((await run('flows', 'results', id.slice(0, 30), '--out', 'out.jsonl')).err).to.include('out.jsonl is there')
    const [row] = (await run('flows', 'batches', '--flow', 'invoice-total')).out.split('\n').slice(1)
    expect(row).to.match(new RegExp(`^${id} +invoice-total +done +2 of 2, 1 not ok `))
    expect((await run('cancel', id)).err).to.include('there is nothing to cancel')
  })

  it('a flow with --deadline is nobody’s to wait for: its id is printed, or what was started as JSON', async () => {
    const start = ['flows', 'run', 'invoice-total', '-i', 'main', '-d', '{"text":"two"}', '--deadline', '0.5']
    const ids = [(await run(...start)).out.trim(), JSON.parse((await run(...start, '--json')).out).run_id as string]
    for (const id of ids) {
      const path = `/dispatches/${id.replace(/^run_/, 'trace_')}`
      const ended = async () => {
        const { body } = await at.server.call('GET', path)
        return (body as { status: string }).status === 'ok' && (body as Record<'started_at' | 'deadline_at', string>)
      }
      const { started_at, deadline_at } = await until(ended, { what: 'the flow to end' })
      expect(Date.parse(deadline_at) - Date.parse(started_at)).to.be.closeTo(1_800_000, 60_000)
    }
    expect((await run(...start, '--wait', '1')).code).to.equal(2)
  })

  it('a flow runs, is evaluated, rolled back and printed as push takes it; its history is listed and replayed', async () => {
    const first = await at.ae.run(['flows', 'run', 'invoice-total', '-i', 'main', '-d', '@-'], {
      input: '{"text":"two"}',
    })
    expect(first.code, first.err).to.equal(0)
    expect(JSON.parse(first.out)).to.deep.equal({ total: 1 })
    expect((await run('flows', 'run', 'invoice-total', '-i', 'main', '-d', '{"text":1}')).code).to.equal(2)
    expect((await run('flows', 'evaluate', 'invoice-total', '-n', '1')).out).to.match(/^pass rate +100 % +100 %$/m)
    expect((await run('flows', 'publish', 'invoice-total')).out).to.equal('invoice-total version 2 published\n')
    expect((await run('flows', 'rollback', 'invoice-total', '1', '--keep-published')).out).to.include('version 3')
    expect((await run('flows', 'get', 'invoice-total')).out)
      .to.match(/^name: invoice-total\n/)
      .and.include('Add up.')
    const [id = ''] = (
      await run('dispatches', 'ls', '-o', 'ids', '--flow', 'invoice-total', '--status', 'ok')
    ).out.split('\n')
    expect((await run('dispatches', 'show', id)).out).to.match(new RegExp(`^trace_id +${id}$`, 'm'))
    expect((await run('why', id)).out).to.match(/^status +ok$/m)
    expect(JSON.parse((await run('dispatches', 'replay', id)).out)).to.deep.equal({ total: 1 })
    expect((await run('flows', 'rm', 'invoice-total')).code).to.equal(2)
    expect((await run('flows', 'rm', 'invoice-total', '--yes')).code).to.equal(0)
    expect((await run('flows', 'get', 'invoice-total')).code).to.equal(4)
  })

  it('a plan is checked and submitted from a file; watched in a pipe it is one line a step, and its outputs', async () => {
    await write('plan.yaml', PLAN)
    expect((await run('plans', 'submit', '--check', 'plan.yaml')).out).to.equal('wave 1  collect\nwave 2  write\n')
    const { code, out, err } = await run('plans', 'submit', '--watch', 'plan.yaml')
    expect(code, err).to.equal(0)
    expect(out).to.include('the notes')
    expect(err).to.match(
      /^plan_[0-9a-f]{32}\n\[1\/2\] ✓ collect +\d+\.\d s.*\n\[2\/2\] ✓ write +\d+\.\d s.*\n✓ done · .* s\n$/,
    )
    expect((await run('plans', 'ls')).out).to.match(/^plan_[0-9a-f]{32} +Release notes +done +2\/2 /m)
  })

  it('a plan is watched in place on a terminal; one that fails exits with 1, and is retried', async () => {
    await write('plan.yaml', PLAN.replace('/say the notes', '/error 401'))
    for (const columns of [80, 200]) {
      const terminal = at.ae.terminal(['plans', 'submit', '-w', join(at.home, 'plan.yaml')], { columns })
      expect(await terminal.exited).to.equal(1)
      const { lines } = terminal.screen
      expect(lines.filter((line) => /^ {2}✓ collect +\d/.test(line))).to.have.length(1)
      expect(lines.filter((line) => line.startsWith('  ✗ write'))).to.have.length(1)
      expect(lines).to.include('● Release notes [2/2]')
      expect(Math.max(...lines.map(({ length }) => length))).to.be.at.most(columns)
    }
    const [id = ''] = (await run('plans', 'ls', '-o', 'ids', '--status', 'failed')).out.split('\n')
    expect((await run('why', id)).err).to.match(/^ae why run_[0-9a-f]{32}\nae plans retry plan_/)
    expect((await run('plans', 'retry', id.slice(0, 24), '-w')).code).to.equal(1)
  })

  it('a plan that is left goes on, attach follows it, and cancel ends it: 130', async () => {
    await write('plan.yaml', 'steps:\n  - {id: wait, prompt: /hang}\n')
    const id = (await run('plans', 'submit', 'plan.yaml')).out.trim()
    const terminal = at.ae.terminal(['attach', id])
    await terminal.shows(/▸ wait/)
    terminal.type('\u0003')
    expect(await terminal.exited).to.equal(130)
    expect(terminal.screen.text).to.include(`ae attach ${id}`)
    const watched = at.ae.start(['plans', 'watch', '--json', id])
    expect((await run('plans', 'cancel', id)).out).to.equal(`${id} cancelled\n`)
    expect(await watched.exited).to.equal(130)
    expect(JSON.parse((await watched.out).trim().split('\n').at(-1) ?? '')).to.have.nested.property(
      'plan.status',
      'cancelled',
    )
  })

  it('a schedule is stored from a file, listed, shown and deleted', async () => {
    await write('schedule.yaml', 'cron: 0 3 * * *\nplan: {steps: [{id: a, prompt: x}]}\n')
    expect((await run('schedules', 'set', 'nightly', 'schedule.yaml')).code).to.equal(0)
    expect((await run('schedules', 'ls')).out).to.match(/^nightly +0 3 \* \* \* UTC +1 /m)
    expect((await run('schedules', 'get', 'nightly')).out).to.match(/^cron +0 3/m)
    expect((await run('schedules', 'rm', 'nightly')).code).to.equal(0)
    expect((await run('schedules', 'get', 'nightly')).code).to.equal(4)
  })

  it('api sends any request, and reads all pages of a list', async () => {
    expect(JSON.parse((await run('api', 'GET', '/health')).out)).to.include({ status: 'ok' })
    const all = JSON.parse((await run('api', 'get', '/plans?limit=1', '--all')).out) as unknown[]
    expect(all.length).to.be.greaterThan(2)
    expect(JSON.parse((await run('api', 'POST', '/sessions', '-d', '{"session_id":"by-api"}')).out)).to.include({
      session_id: 'by-api',
    })
    expect((await run('api', 'GET', 'health')).code).to.equal(2)
    expect((await run('api', 'GET', '/none')).code).to.equal(4)
  })

  it('usage adds up by day, and completion knows every command', async () => {
    expect((await run('usage', '--by', 'model', '--since', '1d')).code).to.equal(0)
    for (const shell of ['bash', 'zsh', 'fish']) {
      const { code, out } = await run('completion', shell)
      expect({
        code,
        hasAll: ['flows', 'approvals', 'push', 'approve'].every((word) => out.includes(word)),
      }).to.deep.equal({ code: 0, hasAll: true })
    }
  })
})
