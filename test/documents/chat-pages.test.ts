import { expect } from 'chai'
import { Chat, type Front, write } from '../fronts/chat.ts'
import { GUIDE_FRONTS } from '../fronts/guide-pages.ts'
import { STORIES } from '../fronts/stories.ts'
import { World } from '../fronts/world.ts'
import { initOf, openStream } from '../support/api-client.ts'
import { useOpened } from '../support/fixture.ts'
import { until } from '../support/until.ts'

/** The page with version 7 plays all stories, the others those in which their packages differ; `npm run try:fronts` plays all with all. */
const DIFFERENT = /^an edit|branch|regenerate last|approve|instead|middle, after|failing run|network/

const isPlayed = ({ title, lacks }: Front, story: string): boolean =>
  !(story in lacks) && (title === 'useChat of ai 7' || DIFFERENT.test(story))

describe('the pages of shared/platform/api/guide.md with the packages of others, in Chromium', () => {
  const world = useOpened(() => World.open())

  for (const front of GUIDE_FRONTS) {
    const stories = Object.entries(STORIES).filter(([name]) => isPlayed(front, name))

    it(`the model reads just what the page with ${front.title} shows, after each of ${stories.length} stories`, async () => {
      const chat = await Chat.open(world, front)
      for (const [name, play] of stories) {
        await play(chat).catch((cause: unknown) => failIn(name, cause))
        await chat.compare().catch((cause: unknown) => failIn(`after ${name}`, cause))
      }
      await chat.page.close()
    })
  }

  for (const front of GUIDE_FRONTS.slice(0, 2))
    it(`the page with ${front.title} takes no answer before it has the newest one again, which would undo it`, async () => {
      const chat = await Chat.open(world, front)
      const [path, answer] = [chat.word('file'), chat.word('answer')]
      await chat.ask(write(path), answer)
      await chat.page.asks(path)
      const { promise: held, resolve: goOn } = Promise.withResolvers<void>()
      await chat.page.page.route('**/stream', (route) => held.then(() => route.continue()))
      await chat.page.reload()
      expect(await chat.page.button('Allow').isDisabled()).to.equal(true)
      goOn()
      await chat.page.click('Allow')
      await chat.page.shows(answer)
      await chat.page.close()
    })

  it('one run is watched natively, approved by another client and shown by useChat at the same time', async () => {
    const [, front] = GUIDE_FRONTS
    if (!front) throw new Error('the guide has no page with useChat')
    const chat = await Chat.open(world, front)
    const [first, second, answer] = [chat.word('file'), chat.word('file'), chat.word('answer')]
    await chat.ask([...write(first), ...write(second)], answer)
    await chat.page.asks(second)
    const { id, run_id: runId } = await chat.waiting()
    const native = await openStream(`${world.product.url}/runs/${runId}/events`, initOf('GET'))
    await chat.call('POST', `/sessions/${chat.page.id}/permissions/${id}`, { allow: true })
    await native.until('permission_resolved')
    // The other client has allowed this call already. The page sends its reply all the same, and then shows how the run went on.
    await chat.page.click('Allow')
    await until(async () => (await chat.page.button('Allow').count()) === 1, { what: 'the page to take the answer' })
    await chat.page.click('Allow')
    await chat.page.shows(answer)
    expect((await native.all()).at(-1)?.event).to.equal('done')
    await chat.page.close()
  })
})

function failIn(story: string, cause: unknown): never {
  throw new Error(`${story}: ${(cause as Error).message}`, { cause })
}
