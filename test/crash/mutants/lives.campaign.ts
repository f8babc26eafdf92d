import { lives } from '../lives/kind.ts'
import { testMutants } from './found.ts'

testMutants(lives)
