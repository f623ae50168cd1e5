import { Button } from './ui';
import Icon from "./ui/icon.js";
export class Main { run(): void { new Button(); } }
