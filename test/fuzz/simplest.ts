import { Connection } from './connection.ts'
import type { Victims } from './draft.ts'
import { type Recipe, simpler } from './generate.ts'
import { inputOfRecipe, type Outcome, send } from './input.ts'

/** Leaves out the steps of a recipe that are not needed for the problem. */
export async function simplest(recipe: Recipe, victims: Victims, port: number): Promise<Recipe> {
  for (const candidate of simpler(recipe)) {
    const { problems } = await sendOnce(candidate, victims, port)
    if (problems.length > 0) return simplest(candidate, victims, port)
  }
  return recipe
}

async function sendOnce(recipe: Recipe, victims: Victims, port: number): Promise<Outcome> {
  using connection = await Connection.open(port)
  return await send(inputOfRecipe(recipe, victims), connection)
}
