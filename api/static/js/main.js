// The dashboard's own behaviour. Everything works on the document, so panels that arrive later need no start of their own.
import "./theme.js";
import "./live.js";
import "./folds.js";
import "./lead.js";
import "./copy.js";
import "./keys.js";
import "./menus.js";
import "./find.js";
import "./clock.js";
import "./diff.js";
import "./plots.js";
import "./sql.js";
