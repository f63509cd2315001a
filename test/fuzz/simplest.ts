import { Connection } from './connection.ts'
import type { Victims } from './draft.ts'
import { type Recipe, simpler } from './generate.ts'
import { type Fired, fire, shotOfRecipe } from './shot.ts'

/** The recipe without every step that the problem does not need. */
export async function simplest(recipe: Recipe, victims: Victims, port: number): Promise<Recipe> {
  for (const candidate of simpler(recipe)) {
    const { problems } = await fireOnce(candidate, victims, port)
    if (problems.length > 0) return simplest(candidate, victims, port)
  }
  return recipe
}

async function fireOnce(recipe: Recipe, victims: Victims, port: number): Promise<Fired> {
  using connection = await Connection.open(port)
  return await fire(shotOfRecipe(recipe, victims), connection)
}
