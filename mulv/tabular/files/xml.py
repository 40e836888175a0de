"""XML read with care: a tree with line numbers, and no document type, so no entities and nothing fetched."""

from typing import NoReturn
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from mulv.tabular.files.lexer import FileError

LINE = "{}line"  # an attribute that no file can have


class Document:
    """The root of a file's tree, and errors that name the file and an element's line."""

    def __init__(self, text: str, source: str):
        self.source = source
        builder, parser = TreeBuilder(), expat.ParserCreate()

        def start(tag: str, attributes: dict[str, str]) -> None:
            builder.start(tag, attributes | {LINE: str(parser.CurrentLineNumber)})

        def refuse(*_: object) -> NoReturn:
            raise FileError(f"{source}:{parser.CurrentLineNumber}: document types are not read")

        parser.StartElementHandler, parser.EndElementHandler = start, builder.end
        parser.CharacterDataHandler, parser.StartDoctypeDeclHandler = builder.data, refuse
        try:
            parser.Parse(text, True)
        except expat.ExpatError as error:
            raise FileError(f"{source}:{error.lineno}: {expat.ErrorString(error.code)}") from error
        except UnicodeEncodeError as error:
            raise FileError(f"{source}:1: the text is not Unicode") from error
        self.root = builder.close()

    def error(self, element: Element, message: str) -> FileError:
        return FileError(f"{self.source}:{element.get(LINE)}: {message}")

    def child(self, element: Element, tag: str) -> Element:
        """The one child of that name."""
        found = element.findall(tag)
        if len(found) != 1:
            raise self.error(element, f"<{element.tag}> needs one <{tag}>, found {len(found)}")
        return found[0]

    def words(self, element: Element) -> list[str]:
        """The words between an element's tags."""
        return (element.text or "").split()
