import { join } from 'node:path'
import type { HtmlTagDescriptor, Plugin, Rolldown } from 'vite'

/**
 * Makes one script of what every page of the console needs, and has the browser fetch it while boot.ts waits for the first paint. One file is
 * smaller than several, and one request. Its styles become a `<style>` of the page: the first paint would wait for a file.
 */
export function packShell(root: string): Plugin {
  const main = join(root, 'main.tsx')
  const shell = new Set<string>()
  const groups = [
    { name: (id: string) => (shell.has(id) ? 'shell' : null), debugName: 'shell', priority: 1 },
    // The shell names each file that a page needs: a small module that several share costs more as a file than in one with others.
    { name: 'common', minShareCount: 2, maxModuleSize: 500 },
  ]
  return {
    name: 'pack-shell',
    config: () => ({
      build: { rolldownOptions: { output: { codeSplitting: { groups, includeDependenciesRecursively: false } } } },
    }),
    buildEnd() {
      const add = (id: string) => {
        if (shell.has(id) || id.includes(PRELOAD_HELPER)) return
        shell.add(id)
        for (const each of this.getModuleInfo(id)?.importedIds ?? []) add(each)
      }
      add(main)
      shell.delete(main)
    },
    transformIndexHtml: {
      order: 'post',
      handler: (_html, { bundle = {} }) => [styleOf(bundle), preloadOf(bundle)],
    },
  }
}

/** Vite's own, which boot.ts needs: with it in the shell, boot.ts would wait for the shell. */
const PRELOAD_HELPER = 'vite/preload-helper'

/** The styles of the shell, whose files are then no longer part of the bundle: no script asks for them. */
function styleOf(bundle: Rolldown.OutputBundle): HtmlTagDescriptor {
  const files = shellOf(bundle).viteMetadata?.importedCss ?? new Set()
  const styles = [...files].map((file) => {
    const asset = bundle[file]
    if (asset?.type !== 'asset') throw new Error(`the shell's ${file} is no file`)
    delete bundle[file]
    return String(asset.source)
  })
  files.clear()
  return { tag: 'style', children: styles.join(''), injectTo: 'head' }
}

function preloadOf(bundle: Rolldown.OutputBundle): HtmlTagDescriptor {
  const href = `/console/${shellOf(bundle).fileName}`
  return { tag: 'link', attrs: { rel: 'modulepreload', crossorigin: true, href }, injectTo: 'head' }
}

function shellOf(bundle: Rolldown.OutputBundle): Rolldown.OutputChunk {
  const chunk = Object.values(bundle).find((each) => each.type === 'chunk' && each.name === 'shell')
  if (chunk?.type !== 'chunk') throw new Error('the console has no shell')
  return chunk
}
