import { join } from 'node:path'
import type { IndexHtmlTransformHook, Plugin } from 'vite'

/**
 * Makes one script of what every page of the console needs, and has the browser fetch it while boot.ts waits for the first paint. One file is
 * smaller than several, and one request.
 */
export function packShell(root: string): Plugin {
  const main = join(root, 'main.tsx')
  const shell = new Set<string>()
  const groups = [{ name: (id: string) => (shell.has(id) ? 'shell' : null), debugName: 'shell' }]
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
    transformIndexHtml: { order: 'post', handler: preloadShell },
  }
}

/** Vite's own, which boot.ts needs: with it in the shell, boot.ts would wait for the shell. */
const PRELOAD_HELPER = 'vite/preload-helper'

const preloadShell: IndexHtmlTransformHook = (_html, { bundle = {} }) => {
  const chunk = Object.values(bundle).find((each) => each.type === 'chunk' && each.name === 'shell')
  if (chunk?.type !== 'chunk') throw new Error('the console has no shell')
  const link = (rel: string) => (file: string) => ({
    tag: 'link',
    attrs: { rel, crossorigin: true, href: `/console/${file}` },
    injectTo: 'head' as const,
  })
  return [
    ...[...(chunk.viteMetadata?.importedCss ?? [])].map(link('stylesheet')),
    link('modulepreload')(chunk.fileName),
  ]
}
