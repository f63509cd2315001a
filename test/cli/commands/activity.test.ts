// Tests ls.ts, why.ts, approvals.ts and reply.ts: what they print, against a server.
import { expect } from 'chai'
import { useAe } from '../../support/ae.ts'
import { answerDirectives } from '../../support/model-server/directives.ts'
import { startStandalone } from '../../support/product.ts'
import { until } from '../../support/until.ts'

describe('ae ls, sessions, show, logs, why and approvals', () => {
  const at = useAe(() => startStandalone({ RUN_RESUME_SECS: '600' })) // The pieces of text are gone after that.
  let failed: string
  before(async () => {
    at.server.model.otherwise(answerDirectives)
    await at.server.call('POST', '/sessions', { session_id: 'support-7' })
    const stream = await at.server.stream('/sessions/support-7/messages', {
      prompt: '/say Hello\n/tool Read {"path":"none.txt"}',
    })
    await stream.all()
    failed = (await (await at.server.run({ prompt: '/error 401' })).all()).at(-1)?.data['code'] as string
  })

  const idsOf = async (...filter: string[]) =>
    (await at.ae.run(['ls', '-o', 'ids', ...filter])).out.trim().split('\n').filter(Boolean)

  it('ls lists runs as a table, ids, JSON or YAML, with filters', async () => {
    const { out } = await at.ae.run(['ls'])
    expect(out).to.match(
      /^ID +KIND +STATE +WHAT +TOKENS +COST +TOOK +AGO\nrun_[0-9a-f]{32} {2}run +provider_auth +\/error 401 /,
    )
    expect(await idsOf()).to.have.length(2)
    expect(await idsOf('--kind', 'message')).to.have.length(1)
    expect(await idsOf('--since', '1h', '--status', 'failed')).to.have.length(1)
    expect(await idsOf('--session', 'other')).to.deep.equal([])
    expect(JSON.parse((await at.ae.run(['ls', '-o', 'json', '-n', '1'])).out)).to.have.length(1)
    expect(
      (await at.ae.run(['ls', '-o', 'jsonl'])).out
        .trim()
        .split('\n')
        .map((line) => typeof JSON.parse(line)),
    ).to.deep.equal(['object', 'object'])
    expect((await at.ae.run(['ls', '-o', 'yaml', '-n', '1'])).out).to.match(/^- run_id: run_[0-9a-f]{32}\n {2}\w+: /)
    expect((await at.ae.run(['ls', '--since', 'soon'])).code).to.equal(2)
  })

  it('a table fits the terminal at 80 and at 200 columns, and is whole in a pipe', async () => {
    for (const columns of [80, 200]) {
      const terminal = at.ae.terminal(['ls'], { columns })
      expect(await terminal.exited).to.equal(0)
      const [head = '', ...lines] = terminal.screen.lines.filter((line) => line !== '')
      expect(lines, 'no line is wrapped').to.have.length(2)
      expect(head).to.match(
        columns === 80 ? /^ID +STATE +WHAT +COST +AGO$|^ID +KIND +STATE +WHAT .*AGO$/ : /TOKENS +COST +TOOK/,
      )
      const id = columns === 80 ? /^run_[0-9a-f]{4}…[0-9a-f]{4} / : /^run_[0-9a-f]{32} /
      for (const line of lines) expect(line).to.match(id)
    }
  })

  it('show tells what is known of a thing, whose kind comes from its id', async () => {
    const [run = ''] = await idsOf('--kind', 'message')
    expect((await at.ae.run(['show', run.slice(-12)])).out).to.match(/^run_id +run_[0-9a-f]{32}\nstatus +done\n/)
    expect((await at.ae.run(['show', 'support-7'])).out).to.match(/^session_id +support-7$/m)
    expect(JSON.parse((await at.ae.run(['show', '--json', 'support'])).out)).to.include({ session_id: 'support-7' })
    expect((await at.ae.run(['show', '-o', 'yaml', 'support-7'])).out).to.match(/^session_id: support-7$/m)
    const unknown = await at.ae.run(['show', 'nothing-like-it'])
    expect(unknown.code).to.equal(4)
    expect(unknown.err).to.match(/^ {2}`ae ls`, `ae plans ls`, .* list what there is\.$/m)
    const { code, err } = await at.ae.run(['show', 'run_'])
    expect(code).to.equal(2)
    expect(err).to.include('names several things').and.to.include(run)
  })

  it('logs prints the events, without the pieces of text unless they are asked for', async () => {
    const [run = ''] = await idsOf('--kind', 'message')
    const names = async (...options: string[]) =>
      (await at.ae.run(['logs', '--json', run, ...options])).out
        .trim()
        .split('\n')
        .map((line) => (JSON.parse(line) as { event: string }).event)
    expect(await names())
      .to.include.members(['text', 'tool_result', 'done'])
      .and.not.include('text_delta')
    expect(await names('--raw')).to.include('text_delta')
    const failure = await at.ae.run(['logs', (await idsOf('--status', 'failed'))[0] ?? ''])
    expect(failure.code).to.equal(0)
    expect(failure.out).to.match(/^ +\d+ {2}error +\{.*"code":"provider_auth"/m)
  })

  it('why says what happened, with code, suggestion, turn and the tools that failed', async () => {
    expect(failed).to.equal('provider_auth')
    const { out } = await at.ae.run(['why', (await idsOf('--status', 'failed'))[0] ?? ''])
    expect(out)
      .to.match(/^code +provider_auth$/m)
      .and.match(/^suggestion +\S+/m)
      .and.match(/^error +\S+/m)
    const [run = ''] = await idsOf('--kind', 'message')
    expect((await at.ae.run(['why', run])).out)
      .to.match(/^tools +Read none\.txt: /m)
      .and.match(/^turn +2$/m)
  })

  it('approvals lists what waits, why names it, a reply with an input changes the call, and it is listed as decided', async () => {
    const run = at.ae.start(['run', '--json', '/tool Write {"path":"a.txt","content":"one"}'])
    run.child.stdin.end()
    const id = await until(async () => (await at.ae.run(['approvals', '-o', 'ids'])).out.trim(), {
      what: 'a pending request',
    })
    expect((await at.ae.run(['approvals'])).out).to.match(new RegExp(`^${id} {2}Write +a\\.txt +run_`, 'm'))
    expect((await at.ae.run(['why', (await idsOf('--status', 'waiting'))[0] ?? ''])).err).to.equal(`ae allow ${id}\n`)
    expect((await at.ae.run(['allow', id, '--input', '[]'])).code).to.equal(2)
    expect((await at.ae.run(['allow', id, '--input', '{"path":1}'])).code).to.equal(2)
    const allowed = await at.ae.run(['allow', id, '--input', '{"path":"a.txt","content":"changed"}'])
    expect(allowed.code).to.equal(0)
    expect(allowed.err, 'the call as it was asked').to.match(/^Write a\.txt\n {2}@@ -0,0 \+1,1 @@\n {2}\+one\n/)
    expect(await run.out).to.include('Wrote 7 bytes')
    expect((await at.ae.run(['deny', id])).code).to.equal(4)
    await until(async () => (await at.ae.run(['approvals', '--decided'])).out.includes('allowed, edited'), {
      what: 'the decision',
    })
  })

  it('a denial reaches the model with its reason, and what is allowed for a session can be taken back', async () => {
    const write = '/tool Write {"path":"b.txt","content":"one"}'
    const ask = () => at.ae.start(['chat', 'support-7'])
    const first = ask()
    first.child.stdin.end(`${write}\n`)
    const denied = await until(async () => (await at.ae.run(['approvals', '-o', 'ids'])).out.trim(), {
      what: 'a pending request',
    })
    expect((await at.ae.run(['deny', denied, '-r', 'not that file'])).out).to.equal(`${denied} denied\n`)
    expect(await first.out).to.include('not that file')
    expect(await first.exited).to.equal(3)
    const second = ask()
    second.child.stdin.end(`${write}\n${write}\n`)
    const allowed = await until(async () => (await at.ae.run(['approvals', '-o', 'ids'])).out.trim(), {
      what: 'a second request',
    })
    await at.ae.run(['allow', allowed, '--session'])
    expect(await second.exited).to.equal(0)
    expect((await at.ae.run(['approvals', '--remembered', '-o', 'ids'])).out).to.equal('support-7 Write\n')
    expect((await at.ae.run(['approvals', 'forget', 'support-7', 'Write'])).out).to.equal('1 forgotten\n')
  })
})
