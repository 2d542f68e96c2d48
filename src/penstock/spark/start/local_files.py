"""Files on one machine, without processes that are started for each.

Spark writes a file of a checkpoint under another name and renames it. Hadoop, through which it does
so, starts ``chmod`` for the permissions of each such file and of its checksum, and ``readlink``
several times to rename it, since Java could do neither when that was written, and the library that
Hadoop has for it is not part of Spark. A micro-batch writes seven such files: some eighty
processes, at several milliseconds of CPU time each. A file of results takes two more ``chmod``,
while its task waits for them.

So Hadoop is given a file system that asks Java instead, and is its own in all other respects:
checksums, what may be replaced, who may read. It is a few lines of Java, compiled by Janino, which
is a part of Spark (it compiles every query), into a jar beside the archive of Java's classes, when
that one is made (:mod:`penstock.spark.start.class_archive`). Spark loads it as it loads the jars of
its users. Where it was not made, Hadoop's own remains.

Hadoop has two interfaces to files. Checkpoints go by the newer one, whose file system is named when
Spark starts. Sinks go by the older one, which Spark asks for before it knows the jars of its users;
so that one is replaced when the session is there (:func:`use_for_sinks`).
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from penstock.spark.private_spark import hadoop_settings, java_of
from penstock.spark.start.given_settings import told_by_arguments

JARS = "spark.jars"
_HADOOP = "spark.hadoop."
_IMPLEMENTATION = f"{_HADOOP}fs.AbstractFileSystem.file.impl"
_NAME = "penstock.LocalFiles"
_OF_SINKS = "fs.file.impl"
_NAME_FOR_SINKS = f"{_NAME}$ForSinks"
_SOURCE = """
package penstock;

import java.io.IOException;
import java.net.URI;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFilePermissions;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.ChecksumFs;
import org.apache.hadoop.fs.DelegateToFileSystem;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FsConstants;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

public class LocalFiles extends ChecksumFs {
    public LocalFiles(URI address, Configuration settings) throws IOException, URISyntaxException {
        super(new Unchecked(settings));
    }

    public static class Unchecked extends DelegateToFileSystem {
        public Unchecked(Configuration settings) throws IOException, URISyntaxException {
            super(FsConstants.LOCAL_FS_URI, new ByJava(), settings, "file", false);
        }

        public int getUriDefaultPort() {
            return -1;
        }

        public boolean isValidName(String name) {
            return true;
        }
    }

    public static class ForSinks extends LocalFileSystem {
        public ForSinks() {
            super(new ByJava());
        }
    }

    public static class ByJava extends RawLocalFileSystem {
        public void setPermission(Path path, FsPermission permission) throws IOException {
            if (permission.getStickyBit()) {
                super.setPermission(path, permission);
                return;
            }
            String mode = permission.getUserAction().SYMBOL
                + permission.getGroupAction().SYMBOL
                + permission.getOtherAction().SYMBOL;
            Files.setPosixFilePermissions(
                pathToFile(path).toPath(), PosixFilePermissions.fromString(mode));
        }

        public FileStatus getFileLinkStatus(Path path) throws IOException {
            if (Files.isSymbolicLink(pathToFile(path).toPath())) {
                return super.getFileLinkStatus(path);
            }
            return getFileStatus(path);
        }
    }
}
"""


def jar_beside(archive: Path) -> Path:
    """Where the compiled classes are that go with the ``archive`` of Java's, if they were made."""
    return archive.with_suffix(".jar")


def write_jar(spark: SparkSession, jar: Path) -> None:
    """Compile them in the JVM of ``spark``."""
    compiler = java_of(spark).org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(hadoop_settings(spark).getClassLoader())
    compiler.cook(_SOURCE)
    made = compiler.getBytecodes()
    with zipfile.ZipFile(jar, "w") as file:
        file.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\n\n")
        for name in made.keySet().toArray():
            file.writestr(f"{name.replace('.', '/')}.class", bytes(made.get(name)))


def settings_with(jar: Path, given: Mapping[str, str]) -> dict[str, str]:
    """Spark's settings by which they are used; none where they are not, or others are ``given``."""
    if os.name != "posix" or not jar.is_file() or "," in str(jar) or _IMPLEMENTATION in given:
        return {}
    if JARS in told_by_arguments(os.environ):
        return {}  # Then ours would not be among them.
    jars = ",".join(filter(None, [given.get(JARS, ""), str(jar)]))
    return {JARS: jars, _IMPLEMENTATION: _NAME}


def use_for_sinks(spark: SparkSession) -> None:
    """Let sinks write by Java alone, if checkpoints do and nobody has said otherwise."""
    settings = hadoop_settings(spark)
    if settings.get(_IMPLEMENTATION.removeprefix(_HADOOP)) != _NAME or settings.get(_OF_SINKS):
        return
    before = java_of(spark).org.apache.hadoop.fs.FileSystem.get(settings)
    settings.set(_OF_SINKS, _NAME_FOR_SINKS)
    if before.getScheme() == "file":
        before.close()  # Hadoop keeps those that are open, and makes no others.
