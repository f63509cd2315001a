/** A way from a node of a graph back to itself: its nodes, the first of them again as the last. */
export type Cycle = readonly string[]

/** Finds cycles in a directed graph. Every graph with a cycle gives at least one; each is given once. */
export function findCycles(nodes: Iterable<string>, targetsOf: (node: string) => Iterable<string>): Cycle[] {
  const found: Cycle[] = []
  const done = new Set<string>()
  const walk = (node: string, path: readonly string[]) => {
    for (const target of targetsOf(node)) {
      const start = path.indexOf(target)
      if (start >= 0) found.push([...path.slice(start), target])
      else if (!done.has(target)) walk(target, [...path, target])
    }
    done.add(node)
  }
  for (const node of nodes) if (!done.has(node)) walk(node, [node])
  return found
}
