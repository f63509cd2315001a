import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { ROOT } from '../deploy/files.ts'
import type { Child } from '../support/child.ts'
import { useTempFolder } from '../support/temp-folder.ts'
import { commandsOf } from './blocks.ts'
import { addressOf, launch } from './launch.ts'

/** Documents whose commands all start a server. */
for (const path of ['deploy/observability/README.md', 'test/conformance/README.md'])
  describe(path, () => {
    const dir = useTempFolder()
    let server: Child | undefined
    afterEach(() => server?.end('SIGKILL'))

    it('starts a server that answers with each of its commands', async () => {
      const commands = commandsOf(await readFile(ROOT + path, 'utf8')).flatMap(({ text }) => text.trim().split('\n'))
      for (const [i, command] of commands.entries()) {
        server = launch(command, join(dir.path, String(i)))
        const address = await addressOf(server)
        expect((await fetch(address)).status, command).to.be.below(500)
        await server.end('SIGKILL')
      }
    })
  })
