import { mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { attachedIn, placed } from '../../../shared/agent/engine/attached-files.ts'
import { planCompaction } from '../../../shared/agent/engine/context/history.ts'
import { summaryMessage } from '../../../shared/agent/engine/context/summary.ts'
import type { Message } from '../../../shared/agent/providers/port.ts'
import { placesFiles } from '../../../shared/agent/tools/workspace/attached.ts'
import type { AttachedFile } from '../../../shared/kernel/attachment.ts'
import { AppError } from '../../../shared/kernel/errors.ts'
import { useTempFolder } from '../../support/temp-folder.ts'

const file = (name: string, more: Partial<AttachedFile> = {}): AttachedFile => ({
  ...{ file_id: name, name, media_type: 'image/png', bytes: 10 },
  ...more,
})
const user = (files: AttachedFile[], text = 'look'): Message => ({ role: 'user', text, files })
const said: Message = { role: 'assistant', blocks: [{ type: 'text', text: 'fine' }] }

describe('the files of messages in the workspace', () => {
  const folder = useTempFolder()
  const pathsOf = (files: AttachedFile[], earlier: Message[] = []) => placed(files, earlier).map(({ path }) => path)

  it('D47.5: have paths of their own, whatever their names are', () => {
    const earlier = [user(placed([file('plan.pdf')], []))]
    expect(pathsOf([file('plan.pdf', { file_id: '2' }), file('PLAN.pdf', { file_id: '3' })], earlier)).to.deep.equal([
      'attachments/plan-2.pdf',
      'attachments/PLAN-3.pdf',
    ])
    expect(pathsOf([file('plan.pdf')], earlier)).to.deep.equal(['attachments/plan.pdf']) // The same file again.
    const [long = ''] = pathsOf([file(`${'ü'.repeat(251)}.pdf`)])
    expect(Buffer.byteLength(long)).to.be.below(220)
    expect(long).to.match(/^attachments\/ü+\.pdf$/)
  })

  it('D47.5: are put there once, beside what a tool has made of them, and never through a link', async () => {
    const workspace = join(folder.path, 'w')
    await mkdir(join(workspace, 'attachments'), { recursive: true })
    await writeFile(join(workspace, 'attachments/changed.txt'), 'changed')
    await symlink(folder.path, join(workspace, 'attachments/out'))
    const files = placed(
      ['a.png', 'changed.txt', 'out', 'gone.png'].map((name) => file(name)),
      [],
    )
    const linked = file('x', { path: 'attachments/out/x' })
    const read: string[] = []
    let isAway = true
    const place = placesFiles(() => [linked, ...files], {
      workspace: () => workspace,
      async readFile({ name }) {
        if (isAway) throw new AppError('unavailable', 'the store is away')
        read.push(name)
        return name === 'gone.png' ? undefined : Buffer.from(name)
      },
    })
    await place().then(
      () => expect.fail('it was placed'),
      (cause: unknown) => expect(cause).to.include({ kind: 'unavailable' }),
    )
    isAway = false
    await place()
    await place()
    expect(read).to.deep.equal(['gone.png', 'a.png'])
    expect((await readdir(join(workspace, 'attachments'))).toSorted()).to.deep.equal(['a.png', 'changed.txt', 'out'])
    expect(await readFile(join(workspace, 'attachments/changed.txt'), 'utf8')).to.equal('changed')
    expect(await readdir(folder.path)).to.deep.equal(['w'])
  })

  it('D47.5: are the newest 50 MB', async () => {
    const read: string[] = []
    const sizes = { old: 30, newer: 20, newest: 25 }
    const files = Object.entries(sizes).map(([name, mb]) => file(name, { path: name, bytes: mb * 1024 * 1024 }))
    const readFileOf = async ({ name }: AttachedFile) => {
      read.push(name)
      return undefined
    }
    await placesFiles(() => files, { workspace: () => join(folder.path, 'v'), readFile: readFileOf })()
    expect(read).to.deep.equal(['newest', 'newer'])
  })
})

describe('a compaction of messages with files', () => {
  const goal = (targetChars: number) => ({ fixedChars: 0, targetChars })

  it('D47.3: names those of earlier prompts and keeps those of the newest', () => {
    const plan = planCompaction([user([file('a')]), said, user([file('b')]), said], goal(7_000))
    expect(plan.older).to.deep.equal([])
    expect(attachedIn(plan.kept).map(({ name, is_named: isNamed }) => [name, isNamed])).to.deep.equal([
      ['a', true],
      ['b', undefined],
    ])
    expect(plan.trimmedOutputs).to.equal(1)
  })

  it('D47.3: names them behind the summary that takes the place of their messages, the newest 50', () => {
    const many = Array.from({ length: 60 }, (_, i) => file(`f${i}`))
    const plan = planCompaction([user(many, 'x'.repeat(5_000)), said, user([]), said], goal(1_000))
    const summary = attachedIn([summaryMessage('short', plan.older)])
    expect(summary).to.have.length(50)
    expect(summary.at(-1)).to.deep.equal(file('f59', { is_named: true }))
  })
})
